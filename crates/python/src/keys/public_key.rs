use std::sync::Arc;

use keywright_rlwe::PublicKey;
use pyo3::prelude::*;

use crate::classes::getters::getters;
use crate::parameters::keys::KeyParameters;
use crate::stored::{Rings, known, not_pickled, read, serialized};

/// A key for encrypting to the owner of the secret; anyone may have it.
///
/// Thread safety: any number of threads may use one at the same time.
#[pyclass(name = "PublicKey", module = "keywright", frozen)]
pub(crate) struct PyPublicKey {
    pub(crate) parameters: KeyParameters,
    pub(crate) key: Arc<PublicKey>,
}

not_pickled!(PyPublicKey);

serialized! {
    PyPublicKey of KeyParameters: "key", "A key", "public key";
    self => &*self.key, self.parameters.rlwe();
    |py, source, parameters| {
        let parameters = parameters.of(source)?;
        let key = Arc::new(read(py, source, parameters.rlwe())?);
        Ok(Self { parameters, key })
    };
    with files
}

#[pymethods]
impl PyPublicKey {
    fn __repr__(&self) -> String {
        format!("PublicKey({})", self.parameters.__repr__())
    }
}

getters! { PyPublicKey, self;
    /// The parameters of the key.
    parameters: KeyParameters = self.parameters.clone();
    /// Identifies the secret of keys and ciphertexts: 32 hexadecimal digits; None if unknown.
    key_identity: Option<String> = known(self.key.identity());
}
