use std::fs::File;
use std::path::PathBuf;

use keywright_rlwe::Security;
use keywright_wire::{Content, Info, inspect as inspect_header};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{Failure, file};

/// What a file of Keywright is, from its header alone, without the parameters it belongs to.
///
/// Returns:
///     A dict with `kind`, `format_version`, `bytes`, `log_n`, `q_count`, `p_count`, `insecure`, `fingerprint` (of the
///     parameters), `secret` (whether it must stay with its owner), and, by kind, `keys` (of a set, or master keys: element, level,
///     alpha, seeded, bytes each), `log_scale` or `plaintext_modulus`.
///
/// Raises:
///     FormatError: the file is not one of Keywright, or its header is damaged.
#[pyfunction]
pub(crate) fn inspect(py: Python<'_>, path: PathBuf) -> Result<Bound<'_, PyDict>, Failure> {
    let info = py.detach(|| {
        let mut reader = std::io::BufReader::new(File::open(&path)?);
        inspect_header(&mut reader)
    });
    Ok(describe(py, &info.map_err(file(&path))?)?)
}

fn describe<'py>(py: Python<'py>, info: &Info) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("kind", info.kind.to_string())?;
    out.set_item("format_version", info.version)?;
    out.set_item("bytes", info.bytes)?;
    out.set_item("log_n", info.identity.log_n)?;
    out.set_item("q_count", info.identity.q_count)?;
    out.set_item("p_count", info.identity.p_count)?;
    out.set_item("insecure", info.identity.security == Security::InsecureForExperiments)?;
    out.set_item("fingerprint", info.identity.fingerprint.to_string())?;
    out.set_item("secret", info.kind.is_secret())?;
    match &info.content {
        Content::CkksParameters(literal) => out.set_item("log_scale", literal.log_scale)?,
        Content::BfvParameters(literal) => out.set_item("plaintext_modulus", literal.plaintext_modulus)?,
        Content::KeySet(entries) | Content::MasterKeys(_, entries) => {
            let keys: Vec<_> = entries
                .iter()
                .map(|entry| {
                    let key = PyDict::new(py);
                    let element = entry.spec.element;
                    key.set_item("element", element.to_string())?;
                    key.set_item("rotation", element.rotation_steps(info.identity.log_n.into()))?;
                    key.set_item("level", entry.spec.level)?;
                    key.set_item("alpha", entry.spec.alpha)?;
                    key.set_item("seeded", entry.spec.seeded)?;
                    key.set_item("bytes", entry.bytes)?;
                    Ok(key)
                })
                .collect::<PyResult<_>>()?;
            out.set_item("keys", keys)?;
        }
        _ => {}
    }
    Ok(out)
}
