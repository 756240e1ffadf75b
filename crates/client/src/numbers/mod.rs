//! Numbers, and the coefficients that hold them.

pub(crate) mod fixed_point;
mod groups;

pub use fixed_point::{Descale, FixedPoint, Layout, Numbers};
pub use groups::{Grouped, Groups};
