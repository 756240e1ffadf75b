use keywright_ckks::CkksError;
use keywright_client::ClientError;
use keywright_rlwe::RlweError;
use keywright_wire::WireError;
use wasm_bindgen::JsValue;

/// An error, with a code for programs and a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: &'static str, message: impl ToString) -> Self {
        Self { code, message: message.to_string() }
    }
}

impl From<Failure> for JsValue {
    fn from(failure: Failure) -> Self {
        let error = js_sys::Error::new(&failure.message);
        // A fresh object accepts any property.
        js_sys::Reflect::set(&error, &"code".into(), &failure.code.into()).unwrap_or_default();
        error.into()
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let code = match &error {
            ClientError::Randomness(_) => "randomness",
            ClientError::NumberRange { .. } => "number_range",
            ClientError::Insecure { .. } => "insecure",
            ClientError::Length { .. } => "length",
            ClientError::Rlwe(RlweError::KeyMismatch { .. }) => "other_key",
            ClientError::Rlwe(_) => "keys",
            _ => "format",
        };
        Self::new(code, error)
    }
}

impl From<CkksError> for Failure {
    fn from(error: CkksError) -> Self {
        let code = match &error {
            CkksError::AboveMagnitude { .. } | CkksError::Encode(_) => "number_range",
            CkksError::Rlwe(RlweError::KeyMismatch { .. }) => "other_key",
            CkksError::Rlwe(_) => "keys",
            _ => "format",
        };
        Self::new(code, error)
    }
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Self {
        Self::new("format", error)
    }
}

impl From<RlweError> for Failure {
    fn from(error: RlweError) -> Self {
        Self::new("keys", error)
    }
}
