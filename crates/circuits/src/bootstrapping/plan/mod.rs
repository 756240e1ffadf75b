//! A whole bootstrapping before any key is made or diagonal encoded: a [`BootstrapperLiteral`] describes what is
//! wanted; a [`BootstrapperPlan`] is checked and complete.
//!
//! | file | content |
//! |---|---|
//! | `literal.rs`, `iterations.rs` | the description of the wanted bootstrapping: plain data and its checks |
//! | `bootstrapper_plan.rs` | the plan: levels and scales |
//! | `construction.rs` | from the literal to the plan |
//! | `factors.rs` | the ways to evaluate the factors of the transforms, and a plan with others |
//! | `keys/` | the keys that are needed, made and checked; the key switches, for a key planner |
//! | `operations.rs` | everything else that takes time, for a key planner |
//! | `scratch.rs` | the memory that stages take while they run |

mod bootstrapper_plan;
mod construction;
mod factors;
mod iterations;
mod keys;
mod literal;
mod operations;
mod scratch;

pub use bootstrapper_plan::BootstrapperPlan;
pub use factors::FactorSteps;
pub use iterations::Iterations;
pub use keys::groups::{KeyGroup, SwitchForm};
pub use literal::{BootstrapperLiteral, Order};
pub use operations::StageOperation;
