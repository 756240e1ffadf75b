//! What all classes of ciphertexts share: their parameters, and how they become bytes and files.

/// The second part of the methods of a class that wraps one ciphertext: `$class` for Python's `$name`, of `$parameters`.
macro_rules! stored_ciphertext {
    ($class:ident, $name:literal, $parameters:ident) => {
        #[pyo3::pymethods]
        impl $class {
            /// The parameters it belongs to.
            #[getter]
            fn parameters(&self) -> $parameters {
                $parameters(self.0.parameters.clone())
            }

            /// The ciphertext as bytes, to be read by `from_bytes`.
            fn to_bytes<'py>(
                &self,
                py: pyo3::Python<'py>,
            ) -> Result<pyo3::Bound<'py, pyo3::types::PyBytes>, $crate::errors::Failure> {
                use keywright_wire::Wire;
                let bytes = $crate::threads::compute(py, || self.0.to_bytes(&self.0.parameters))?;
                Ok(pyo3::types::PyBytes::new(py, &bytes))
            }

            /// A ciphertext from the bytes of `to_bytes`.
            ///
            /// Raises:
            ///     FormatError: the bytes are not a whole, intact ciphertext of this class.
            ///     MixedParametersError: it belongs to other parameters.
            #[staticmethod]
            fn from_bytes(
                py: pyo3::Python<'_>,
                data: &[u8],
                parameters: &$parameters,
            ) -> Result<Self, $crate::errors::Failure> {
                use keywright_wire::Wire;
                $crate::threads::compute(py, || Wire::from_bytes(data, &parameters.0)).map(Self)
            }

            /// Writes the ciphertext to a file, which appears whole or not at all.
            fn save(
                &self,
                py: pyo3::Python<'_>,
                path: std::path::PathBuf,
            ) -> Result<(), $crate::errors::Failure> {
                use keywright_wire::Wire;
                let parameters = &self.0.parameters;
                $crate::threads::compute(py, || {
                    self.0.save(&path, parameters).map_err($crate::errors::file(&path))
                })
            }

            /// Reads the ciphertext of a file; errors as of `from_bytes`.
            #[staticmethod]
            fn load(
                py: pyo3::Python<'_>,
                path: std::path::PathBuf,
                parameters: &$parameters,
            ) -> Result<Self, $crate::errors::Failure> {
                use keywright_wire::Wire;
                $crate::threads::compute(py, || {
                    Wire::load(&path, &parameters.0).map_err($crate::errors::file(&path))
                })
                .map(Self)
            }

            fn __reduce__(&self) -> Result<(), $crate::errors::Failure> {
                Err($crate::errors::Failure::Pickle($name))
            }
        }
    };
}

pub(crate) use stored_ciphertext;
