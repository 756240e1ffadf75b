//! Key switching: its arithmetic ([`plan`]), longer digits from the rows of a key ([`coalescing`]), ModUp, the inner
//! product with keys, ModDown, and the pipeline that joins them.

mod inner_product;
mod mod_down;
mod mod_raise;
mod mod_up;
mod pipeline;
mod planning;
pub mod ring_down;
pub mod ring_up;

pub use mod_down::ModDown;
pub use mod_raise::raise_modulus;
pub use mod_up::{Decomposed, ModUpDigits};
pub use pipeline::Finish;
pub(crate) use planning::cache::PlanCache;
pub(crate) use planning::coalescing::used_rows;
pub use planning::layout::SwitchLayout;
pub use planning::plan::SwitchPlan;
pub use planning::scratch::division_limbs;
pub use planning::work::{RANK_WEIGHTS, SwitchWork, Work};
pub use planning::{coalescing, plan};
pub use ring_down::ring_down;
pub use ring_up::ring_up;
