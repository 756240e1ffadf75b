//! Linear transforms, bootstrapping, and their operation counts.

pub(crate) mod arithmetic;
pub(crate) mod bootstrapper;
pub(crate) mod bootstrapper_plan;
pub(crate) mod error_model;
pub(crate) mod linear_transform;
pub(crate) mod plan_arguments;
pub(crate) mod polynomial;
