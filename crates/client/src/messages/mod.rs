//! Messages: numbers in encrypted form, written and read.

mod compact_form;
mod decrypt;
mod encrypt;
mod groups;

pub use compact_form::{CompactForm, Dropped, Form, SecondHalf, write_compact};
pub use decrypt::Answer;
pub use encrypt::{encrypt, encrypt_symmetric};
pub use groups::{Grouped, Groups};
