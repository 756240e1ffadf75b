//! Search: an index of integer vectors, and the encrypted scores of a query.

pub(crate) mod answer;
pub(crate) mod index;
