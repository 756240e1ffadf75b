//! The rotations of baby and giant steps: their keys, and what they have in common.

pub(crate) mod hoisting;
pub(crate) mod keys;
pub(crate) mod rotation;
pub(crate) mod tiers;
