/// The common methods of the evaluators of both schemes, besides a `run_on` that computes in the ring of a ciphertext.
/// `$class` computes by an `$evaluator` on `$ciphertext`s of `$parameters`, which keys know as `$scheme`. Called with a
/// ciphertext it returns the `$value` of `keywright.values`.
macro_rules! evaluator_methods {
    (
        $class:ident computes by $evaluator:ident on $ciphertext:ident of $parameters:ident as $scheme:ident,
        called for $value:literal
    ) => {
        impl $class {
            /// Computes with the current keys.
            pub(crate) fn with<T: Send, E>(
                &self,
                py: Python<'_>,
                work: impl FnOnce(&$evaluator<'_>) -> Result<T, E> + Send,
            ) -> Result<T, Failure>
            where
                Failure: From<E>,
            {
                self.keys
                    .get()
                    .compute::<T, Failure>(py, |keys| Ok(work(&$evaluator::new(&self.parameters.0, keys)?)?))
            }

            /// Computes a ciphertext.
            pub(crate) fn run<E>(
                &self,
                py: Python<'_>,
                work: impl FnOnce(&$evaluator<'_>) -> Result<Ciphertext, E> + Send,
            ) -> Result<$ciphertext, Failure>
            where
                Failure: From<E>,
            {
                self.with(py, work).map($ciphertext)
            }
        }

        $crate::stored::not_pickled!($class);

        #[pymethods]
        impl $class {
            #[new]
            #[pyo3(signature = (parameters, keys=None))]
            fn new(
                py: Python<'_>,
                parameters: &$parameters,
                keys: Option<Py<PyEvaluationKeys>>,
            ) -> Result<Self, Failure> {
                let keys = match keys {
                    Some(keys) => keys,
                    None => Py::new(py, PyEvaluationKeys::empty(KeyParameters::$scheme(parameters.clone())))?,
                };
                $evaluator::new(&parameters.0, &keys.get().snapshot())?;
                Ok(Self { parameters: parameters.clone(), keys })
            }

            /// The parameters it computes with.
            #[getter]
            fn parameters(&self) -> $parameters {
                self.parameters.clone()
            }

            /// Its keys. Keys added to them are used from then on.
            #[getter]
            fn keys(&self, py: Python<'_>) -> Py<PyEvaluationKeys> {
                self.keys.clone_ref(py)
            }

            /// The ciphertext as a value with operators: + - * ** << >>.
            fn __call__<'py>(
                slf: &Bound<'py, Self>,
                ciphertext: &Bound<'py, $ciphertext>,
            ) -> PyResult<Bound<'py, PyAny>> {
                slf.py().import("keywright.values")?.getattr($value)?.call1((slf, ciphertext))
            }

            /// -a.
            fn neg(&self, py: Python<'_>, a: &$ciphertext) -> Result<$ciphertext, Failure> {
                self.run_on(py, a, |evaluator| evaluator.neg(&a.0))
            }

            /// a at degree 1.
            fn relinearize(&self, py: Python<'_>, a: &$ciphertext) -> Result<$ciphertext, Failure> {
                self.run_on(py, a, |evaluator| evaluator.relinearize(&a.0))
            }

            fn __repr__(&self) -> String {
                let keys = crate::classes::counted(self.keys.get().snapshot().len(), "key");
                format!("{}({}, {keys})", <Self as pyo3::PyClass>::NAME, self.parameters.__repr__())
            }
        }
    };
}

/// Methods of an evaluator that compute a ciphertext in the ring of the first operand `a`: documentation, name and
/// further arguments of each, which are those of the engine's method of that name.
macro_rules! operations {
    ($class:ident on $ciphertext:ident; $(
        $(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*);
    )*) => {
        #[$crate::arguments::integers::integers]
        #[pymethods]
        impl $class {$(
            $(#[$doc])*
            fn $name(
                &self,
                py: Python<'_>,
                a: &$ciphertext,
                $($argument: $type),*
            ) -> Result<$ciphertext, Failure> {
                self.run_on(py, a, |evaluator| evaluator.$name(&a.0, $($argument),*))
            }
        )*}
    };
}

pub(crate) use {evaluator_methods, operations};
