//! Search: indices of integer vectors in the clear and encrypted, and the encrypted scores of a query.

pub(crate) mod answer;
pub(crate) mod encrypted;
pub(crate) mod index;
