//! Pools of encryptions, and their files.

use keywright_pool::{FileProblem, PoolError};

use super::description::table;

table! { pool(py, PoolError);
    E::Range { what, value, min, max } => "ParameterError" { what, value, minimum = min, maximum = max },
    E::Stopped(_) => "PoolError" { code = "empty", made = py.None(), taken = py.None() },
    E::Empty { made, taken } => "PoolError" { code = "empty", made, taken },
    E::Threads { requested, .. } => "ParameterError" { what = "threads", value = requested },
    E::Forked { owner, process } => "RandomnessError" { code = "forked", owner, process },
    E::Producer(error) => pool(error),
    #[cfg(feature = "insecure")]
    E::ChemUnit { unit, smallest } => "ParameterError" { what = "unit", value = unit, minimum = smallest },
    #[cfg(feature = "insecure")]
    E::ChemInteger { unit } => "ParameterError" { what = "unit", value = unit },
    #[cfg(feature = "insecure")]
    E::ChemMessage { value, bits } => "EncodeError" { value, available_bits = f64::from(*bits) },
    E::File { path, problem } => "PoolError" { code = file_reason(problem), path },
    _ => "KeywrightError" {},
}

pub(super) fn file_reason(problem: &FileProblem) -> &'static str {
    match problem {
        FileProblem::Foreign => "foreign",
        FileProblem::Length { .. } => "length",
        FileProblem::Key => "file_key",
        FileProblem::ForeignParameters { .. } => "parameters",
        FileProblem::ForeignKey => "key",
        FileProblem::ForeignEntries { .. } => "entries",
        FileProblem::Unregistered { .. } => "unregistered",
        FileProblem::Copied { .. } => "copied",
        FileProblem::Locked { .. } => "locked",
        FileProblem::Register { .. } => "register",
        FileProblem::Tampered { .. } => "tampered",
        _ => "contents",
    }
}
