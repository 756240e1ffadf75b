//! Sets of keys, and routes through them.

pub(crate) mod outline;
pub(crate) mod route;
pub(crate) mod set;
