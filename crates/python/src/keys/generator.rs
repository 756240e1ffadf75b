use std::sync::Arc;

use keywright_rlwe::{EvaluationKeys, KeyElement, KeyGenerator, KeySpec, SwitchingKey};
use keywright_wire::{AtomicFile, KeySetWriter};
use pyo3::prelude::*;

use super::descriptions::spec::{KeyShape, PyKeySpec, conjugation, rotation, spec, specs_for};
use crate::arguments::integers::integers;
use crate::arguments::path::FilePath;
use crate::errors::{Failure, file};
use crate::keys::evaluation_keys::PyEvaluationKeys;
use crate::keys::progress::report;
use crate::keys::public_key::PyPublicKey;
use crate::keys::secret_key::PySecretKey;
use crate::keys::switching_key::PySwitchingKey;
use crate::parameters::keys::KeyParameters;
use crate::randomness::Randomness;
use crate::stored::opaque;
use crate::threads::compute;

/// Makes the keys of one secret.
///
/// Thread safety: any number of threads may use one at the same time.
///
/// Args:
///     secret: the secret of the owner of the data.
///     entropy: 32 bytes that determine the keys, for tests only. The operating system's randomness by default.
///
/// The methods that make switching keys take `level`, `alpha` and `seeded` like `KeySpec`, and raise the same errors.
#[pyclass(name = "KeyGenerator", module = "keywright", frozen)]
pub(crate) struct PyKeyGenerator {
    secret: Py<PySecretKey>,
    rng: Randomness,
}

impl PyKeyGenerator {
    fn parameters(&self) -> &KeyParameters {
        &self.secret.get().parameters
    }

    fn generate(&self, py: Python<'_>, spec: &KeySpec) -> Result<Arc<SwitchingKey>, Failure> {
        let secret = &self.secret.get().key;
        let rng = self.rng.split()?;
        Ok(Arc::new(compute(py, || KeyGenerator::new(secret, rng).switching_key(spec))?))
    }

    fn of_element(
        &self,
        py: Python<'_>,
        element: KeyElement,
        shape: KeyShape,
    ) -> Result<PySwitchingKey, Failure> {
        let key = self.generate(py, &spec(self.parameters().rlwe(), element, shape)?)?;
        Ok(PySwitchingKey { parameters: self.parameters().clone(), key })
    }

    fn own_specs(&self, specs: &[PyRef<'_, PyKeySpec>]) -> Result<Vec<KeySpec>, Failure> {
        specs_for(self.parameters().rlwe(), specs, "the key generator", "the spec")
    }

    /// Makes keys one by one, and passes each to `each`. Handles signals and reports progress between two keys.
    fn for_each_key(
        &self,
        py: Python<'_>,
        specs: &[KeySpec],
        progress: Option<&Bound<'_, PyAny>>,
        mut each: impl FnMut(Arc<SwitchingKey>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let secret = &self.secret.get().key;
        let mut generator = KeyGenerator::new(secret, self.rng.split()?);
        let mut keys = generator.switching_keys(specs)?;
        while let Some(key) = compute(py, || keys.next().transpose())? {
            each(Arc::new(key))?;
            report(py, progress, specs.len() - keys.len(), specs.len())?;
        }
        Ok(())
    }
}

opaque!(PyKeyGenerator);

/// Methods that make a key: documentation, name and own arguments of each, and the element of the key.
macro_rules! key_methods {
    ($generator:ident; $($(#[$doc:meta])* $name:ident($($own:ident: $type:ty),*) = $element:expr;)*) => {
        #[integers]
        #[pymethods]
        impl PyKeyGenerator {$(
            $(#[$doc])*
            #[pyo3(signature = ($($own,)* level=None, alpha=None, seeded=true))]
            fn $name(
                &self,
                py: Python<'_>,
                $($own: $type,)*
                level: Option<usize>,
                alpha: Option<usize>,
                seeded: bool,
            ) -> Result<PySwitchingKey, Failure> {
                let $generator = self;
                $generator.of_element(py, $element, KeyShape { level, alpha, seeded, special: None })
            }
        )*}
    };
}

key_methods! { generator;
    /// A key for relinearization.
    relinearization_key() = KeyElement::Relinearization;
    /// A key for rotations by a number of steps to the left.
    rotation_key(steps: i64) = rotation(generator.parameters().rlwe(), steps);
    /// A key for the complex conjugation of slots; for BFV, for the swap of the rows.
    conjugation_key() = conjugation(generator.parameters().rlwe());
}

#[integers]
#[pymethods]
impl PyKeyGenerator {
    #[new]
    #[pyo3(signature = (secret, entropy=None))]
    fn new(secret: Py<PySecretKey>, entropy: Option<[u8; 32]>) -> Result<Self, Failure> {
        Ok(Self { secret, rng: Randomness::new(entropy)? })
    }

    /// The parameters of the secret.
    #[getter(parameters)]
    fn of_parameters(&self) -> KeyParameters {
        self.parameters().clone()
    }

    /// A public key, for encrypting.
    ///
    /// Args:
    ///     log_n: log2 of the degree of the encryption's ring; that of the parameters by default.
    ///
    /// Raises:
    ///     ParameterError: the parameters have no such ring.
    #[pyo3(signature = (log_n=None))]
    fn public_key(&self, py: Python<'_>, log_n: Option<u32>) -> Result<PyPublicKey, Failure> {
        let log_n = log_n.unwrap_or(self.parameters().rlwe().log_n());
        let parameters = self.parameters().ring_of_degree(log_n)?;
        let secret = self.secret.get().key.ring_of_degree(log_n)?;
        let rng = self.rng.split()?;
        let key = compute(py, || -> Result<_, Failure> { Ok(KeyGenerator::new(secret, rng).public_key()) })?;
        Ok(PyPublicKey { parameters, key: Arc::new(key) })
    }

    /// The key of a spec.
    ///
    /// Raises:
    ///     MismatchError: the spec is for other parameters.
    fn switching_key(&self, py: Python<'_>, spec: &PyKeySpec) -> Result<PySwitchingKey, Failure> {
        let parameters = self.parameters();
        parameters.rlwe().ring_like(spec.parameters.rlwe(), "the key generator", "the spec")?;
        Ok(PySwitchingKey { parameters: parameters.clone(), key: self.generate(py, &spec.spec)? })
    }

    /// The keys that a server needs.
    ///
    /// Args:
    ///     rotations: steps of the rotations; all their keys have the same level.
    ///     relinearization: whether to make the key for products.
    ///     conjugation: whether to make the key for conjugation.
    ///     specs: further keys; ephemeral keys in pairs of one weight.
    ///     progress: called after each key with the number of keys made and their total; may raise to stop.
    ///
    /// Raises:
    ///     MismatchError: a spec is for other parameters.
    ///     ParameterError: the key to an ephemeral secret of a weight, or the key back, is missing or repeated.
    #[pyo3(signature = (rotations=Vec::new(), relinearization=true, conjugation=false, level=None, alpha=None, seeded=true, specs=Vec::new(), progress=None))]
    fn evaluation_keys(
        &self,
        py: Python<'_>,
        rotations: Vec<i64>,
        relinearization: bool,
        conjugation: bool,
        level: Option<usize>,
        alpha: Option<usize>,
        seeded: bool,
        specs: Vec<PyRef<'_, PyKeySpec>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyEvaluationKeys, Failure> {
        let parameters = self.parameters().rlwe();
        let shape = KeyShape { level, alpha, seeded, special: None };
        let mut elements: Vec<_> = rotations.iter().map(|&steps| rotation(parameters, steps)).collect();
        elements.sort();
        elements.dedup();
        elements.extend(relinearization.then_some(KeyElement::Relinearization));
        elements.extend(conjugation.then(|| super::descriptions::spec::conjugation(parameters)));
        let mut required = elements
            .into_iter()
            .map(|element| spec(parameters, element, shape.clone()))
            .collect::<Result<Vec<_>, _>>()?;
        required.extend(self.own_specs(&specs)?);
        let mut keys = EvaluationKeys::new(parameters);
        self.for_each_key(py, &required, progress, |key| Ok(keys.insert(key)?))?;
        Ok(PyEvaluationKeys::new(self.parameters().clone(), keys))
    }

    /// Makes keys and writes each to a file as soon as it exists: the set need not fit in memory. The file appears
    /// whole or not at all. `EvaluationKeys.load` reads it.
    ///
    /// Args:
    ///     path: the file.
    ///     specs: the keys.
    ///     progress: as for `evaluation_keys`.
    #[pyo3(signature = (path, specs, progress=None))]
    fn save_evaluation_keys(
        &self,
        py: Python<'_>,
        path: FilePath,
        specs: Vec<PyRef<'_, PyKeySpec>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> Result<(), Failure> {
        let required = self.own_specs(&specs)?;
        let target = AtomicFile::create(&path).map_err(|error| file(&path)(error.into()))?;
        let mut writer =
            KeySetWriter::new(target, &required, self.parameters().rlwe()).map_err(file(&path))?;
        self.for_each_key(py, &required, progress, |key| {
            py.detach(|| writer.write(&key).map_err(file(&path)))
        })?;
        py.detach(|| writer.finish().and_then(|done| Ok(done.commit()?)).map_err(file(&path)))
    }
}
