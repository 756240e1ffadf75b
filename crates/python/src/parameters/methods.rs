/// The common methods of the classes of parameters: `$class` wraps `$parameters`, which `$literal` describes.
macro_rules! parameter_methods {
    ($class:ident wraps $parameters:ident, described by $literal:ident) => {
        impl PartialEq for $class {
            fn eq(&self, other: &Self) -> bool {
                self.0.literal() == other.0.literal() && self.0.rlwe().same(other.0.rlwe())
            }
        }

        impl $class {
            /// Refuses parameters that no bound was checked for, unless the caller says so: bytes alone do not
            /// switch the check off.
            fn accepted(self, insecure: bool) -> Result<Self, $crate::errors::Failure> {
                if self.insecure() && !insecure {
                    return Err($crate::errors::Refusal::Unchecked.into());
                }
                Ok(self)
            }
        }

        $crate::stored::not_pickled!($class);
        $crate::classes::getters::getters! { $class, self;
            /// log2 of the ring degree.
            log_n: u32 = self.0.rlwe().log_n();
            /// Ciphertext primes q_0 .. q_L.
            q: Vec<u64> = self.0.rlwe().literal().q.clone();
            /// Special primes.
            p: Vec<u64> = self.0.rlwe().literal().p.clone();
            /// log2 of the ciphertext modulus at the highest level.
            log_q: f64 = self.0.rlwe().log2_q(self.0.max_level());
            /// Whether the security bound is switched off.
            insecure: bool = self.0.security() == keywright_rlwe::Security::InsecureForExperiments;
        }

        #[pyo3::pymethods]
        impl $class {
            /// log2 of the modulus of all primes.
            #[getter]
            fn log_qp(&self) -> f64 {
                let rlwe = self.0.rlwe();
                (0..rlwe.prime_count()).map(|i| rlwe.log2_prime(i)).sum()
            }

            /// The security that is enforced for every key: "128-bit classical", or "none (insecure)". Where all
            /// primes together are above the bound, so that keys with all of them are refused, it names the bound.
            #[getter]
            fn security(&self) -> String {
                if self.insecure() {
                    return "none (insecure)".into();
                }
                let (rlwe, log_qp) = (self.0.rlwe(), self.log_qp());
                match keywright_rlwe::maximum_log_qp(rlwe.log_n(), rlwe.secret()) {
                    Ok(bound) if log_qp > f64::from(bound) => {
                        format!("128-bit classical for keys of at most {bound} bits")
                    }
                    _ => "128-bit classical".into(),
                }
            }

            /// The parameters as bytes, for `from_bytes`.
            fn to_bytes<'py>(
                &self,
                py: pyo3::Python<'py>,
            ) -> Result<pyo3::Bound<'py, pyo3::types::PyBytes>, $crate::errors::Failure> {
                use keywright_wire::Wire;
                Ok(pyo3::types::PyBytes::new(py, &self.0.literal().to_bytes(&())?))
            }

            /// Parameters from the bytes of `to_bytes`, with the usual checks.
            ///
            /// Args:
            ///     insecure: also accept parameters that were made with `insecure`.
            ///
            /// Raises:
            ///     FormatError: the bytes are not whole, intact parameters.
            ///     SecurityError: they exceed the bound, or were made with `insecure`.
            #[staticmethod]
            #[pyo3(signature = (data, *, insecure=false))]
            fn from_bytes(
                py: pyo3::Python<'_>,
                data: &[u8],
                insecure: bool,
            ) -> Result<Self, $crate::errors::Failure> {
                use keywright_wire::Wire;
                py.detach(|| Self($parameters::new($literal::from_bytes(data, &())?)?).accepted(insecure))
            }

            /// Writes the parameters to a file, which appears whole or not at all.
            fn save(
                &self,
                py: pyo3::Python<'_>,
                path: $crate::arguments::path::FilePath,
            ) -> Result<(), $crate::errors::Failure> {
                use keywright_wire::Wire;
                py.detach(|| self.0.literal().save(&path, &()).map_err($crate::errors::file(&path)))
            }

            /// Reads the parameters of a file; arguments and errors as for `from_bytes`.
            #[staticmethod]
            #[pyo3(signature = (path, *, insecure=false))]
            fn load(
                py: pyo3::Python<'_>,
                path: $crate::arguments::path::FilePath,
                insecure: bool,
            ) -> Result<Self, $crate::errors::Failure> {
                use keywright_wire::Wire;
                py.detach(|| {
                    let literal = $literal::load(&path, &()).map_err($crate::errors::file(&path))?;
                    Self($parameters::new(literal)?).accepted(insecure)
                })
            }
        }
    };
}

pub(crate) use parameter_methods;
