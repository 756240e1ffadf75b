//! Key switching: its arithmetic ([`plan`]), longer digits from the rows of a key ([`coalescing`]), ModUp, the inner
//! product with keys, ModDown, and the pipeline that joins them.

mod cache;
pub mod coalescing;
mod inner_product;
mod layout;
mod mod_down;
mod mod_raise;
mod mod_up;
mod pipeline;
pub mod plan;
pub mod ring_down;
pub mod ring_up;
mod scratch;
mod work;

pub(crate) use cache::PlanCache;
pub(crate) use coalescing::used_rows;
pub use layout::SwitchLayout;
pub use mod_down::ModDown;
pub use mod_raise::raise_modulus;
pub use mod_up::{Decomposed, ModUpDigits};
pub use pipeline::Finish;
pub use plan::SwitchPlan;
pub use ring_down::ring_down;
pub use ring_up::ring_up;
pub use scratch::division_limbs;
pub use work::{RANK_WEIGHTS, SwitchWork, Work};
