//! The common methods of the classes of ciphertexts of both schemes.

/// The common methods of all classes of ciphertexts: `$class` wraps one of `$parameters`, whose packing `$packing`
/// names.
macro_rules! stored_ciphertext {
    ($class:ident of $parameters:ident, packed as $packing:ident) => {
        $crate::stored::not_pickled!($class);
        $crate::classes::getters::getters! { $class, self;
            /// The parameters of the ciphertext.
            parameters: $parameters = $parameters(self.0.parameters.clone());
            /// The identity of the secret key that decrypts it, 32 hexadecimal digits; None if unknown.
            key_identity: Option<String> = $crate::stored::known(self.0.key());
            /// "slots" or "coefficients": the places of its values.
            packing: &'static str = $packing(self.0.packing);
        }

        #[pyo3::pymethods]
        impl $class {
            /// Ciphertexts have no comparison that a program could use: equal messages have different ciphertexts.
            fn __richcmp__(
                &self,
                _other: &pyo3::Bound<'_, pyo3::PyAny>,
                _operation: pyo3::basic::CompareOp,
            ) -> pyo3::PyResult<bool> {
                Err(pyo3::exceptions::PyTypeError::new_err(
                    "encrypted values cannot be compared without their secret key; decrypt them first, or compare \
                     the bytes of to_bytes()",
                ))
            }

            /// The bytes of a ciphertext say nothing of its values, so it is neither true nor false.
            fn __bool__(&self) -> pyo3::PyResult<bool> {
                Err(pyo3::exceptions::PyTypeError::new_err(
                    "encrypted values are neither true nor false without their secret key; decrypt them first, or \
                     write `is None` to test whether there is a ciphertext",
                ))
            }

            fn __hash__(slf: pyo3::PyRef<'_, Self>) -> isize {
                slf.as_ptr() as isize
            }
        }

        $crate::stored::serialized! {
            $class of &$parameters: "ciphertext", "A ciphertext", "ciphertext of this class";
            self => &self.0, &self.0.parameters;
            |py, source, parameters| {
                let parameters = $crate::stored::Rings::of(&parameters.0, source)?;
                $crate::stored::read(py, source, &parameters).map(Self)
            };
            with files
        }
    };
}

/// The common methods of ciphertexts for computation.
macro_rules! whole_ciphertext {
    ($class:ident of $parameters:ident, packed as $packing:ident) => {
        $crate::classes::ciphertext::stored_ciphertext!($class of $parameters, packed as $packing);

        $crate::classes::getters::getters! { $class, self;
            /// Degree in the secret: 1, or 2 after `multiply_lazy`.
            degree: usize = self.0.degree();
            /// Bytes of its residues in memory.
            bytes: usize = self.0.bytes();
        }
    };
}

/// The common methods of ciphertexts with a seed as one half.
macro_rules! seeded_ciphertext {
    ($class:ident of $parameters:ident, packed as $packing:ident, expanded to $ciphertext:ident) => {
        $crate::classes::ciphertext::stored_ciphertext!($class of $parameters, packed as $packing);

        $crate::classes::getters::getters! { $class, self;
            /// Bytes of its residues and its seed in memory.
            bytes: usize = self.0.bytes();
        }

        #[pyo3::pymethods]
        impl $class {
            /// The ciphertext to compute with.
            fn expand(&self, py: pyo3::Python<'_>) -> Result<$ciphertext, $crate::errors::Failure> {
                $crate::threads::compute(py, || Ok::<_, $crate::errors::Failure>($ciphertext(self.0.expand())))
            }
        }
    };
}

pub(crate) use {seeded_ciphertext, stored_ciphertext, whole_ciphertext};
