//! Arguments of Python as values of the engine.

pub(crate) mod array;
pub(crate) mod integers;
pub(crate) mod operand;
pub(crate) mod path;
