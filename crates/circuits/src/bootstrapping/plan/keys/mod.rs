//! The keys of a bootstrapping.

pub(crate) mod groups;
pub(crate) mod queries;
