//! Headers and bodies on streams and in files.

pub(crate) mod body;
pub(crate) mod file;
pub(crate) mod header;
pub(crate) mod temporary;
