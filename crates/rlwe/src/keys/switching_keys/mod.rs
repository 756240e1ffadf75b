//! Switching keys: their layouts, rows, and stored forms.

pub(crate) mod key;
pub(crate) mod layout;
pub(crate) mod row;
pub(crate) mod stored;
