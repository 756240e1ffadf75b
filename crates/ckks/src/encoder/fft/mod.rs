//! The special FFT: its passes and its roots of unity.

pub(crate) mod double_double;
pub(crate) mod passes;
pub(crate) mod roots;
