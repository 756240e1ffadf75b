//! Switching keys: their descriptions, rows, and stored forms.

pub(crate) mod key;
pub(crate) mod layout;
pub(crate) mod row;
pub(crate) mod spec;
pub(crate) mod stored;
