//! Key switching: its arithmetic ([`plan`]), longer digits from the rows of a key ([`coalescing`]), ModUp, the inner
//! product with keys, ModDown, and the pipeline that joins them.

mod hoisted_automorphisms;
mod inner_product;
mod mod_down;
mod mod_raise;
mod mod_up;
mod pipeline;
pub mod ring_down;
pub mod ring_up;

pub use crate::planning::division::ModDown;
pub use crate::planning::layout::SwitchLayout;
pub use crate::planning::plan::SwitchPlan;
pub use crate::planning::scratch::division_limbs;
pub use crate::planning::work::{RANK_WEIGHTS, SwitchWork, Work};
pub use crate::planning::{coalescing, plan};
pub use hoisted_automorphisms::images;
pub use mod_raise::raise_modulus;
pub use mod_up::{Decomposed, ModUpDigits};
pub use pipeline::Finish;
pub use ring_down::ring_down;
pub use ring_up::ring_up;
