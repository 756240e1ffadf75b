use std::path::PathBuf;

use keywright_rlwe::Security;
use keywright_wire::{Content, Info, inspect as inspect_header, open_file};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;

use crate::errors::{Failure, file};

/// Bytes in memory, or the path of a file.
#[derive(FromPyObject)]
pub(crate) enum Source {
    Bytes(PyBackedBytes),
    Path(PathBuf),
}

/// Whether a secret key begins anywhere in some bytes: a Keywright object whose kind is secret. Misses one whose head
/// is cut off at the end.
#[pyfunction]
pub(crate) fn contains_secret(py: Python<'_>, data: PyBackedBytes) -> bool {
    py.detach(|| keywright_wire::contains_secret(&data))
}

/// Identifies Keywright bytes or a file from their header alone, without their parameters.
///
/// Args:
///     source: a path, or the object's bytes, of which everything after the header may be missing.
///
/// Returns:
///     A dict with `kind`, `format_version`, `bytes`, `log_n`, `q_count`, `p_count`, `insecure`, `fingerprint` (of the
///     parameters), `key_identity` (of the secret that it belongs to; None of a joint key, of an object of no key,
///     and of files of format version 1), `secret` (whether it must stay with its owner), and, by kind, `keys` (of
///     a set, or master keys: element, level, alpha, seeded, bytes each), `log_scale` or `plaintext_modulus`.
///
/// Raises:
///     FormatError: they are not of Keywright, or their header is damaged.
#[pyfunction]
pub(crate) fn inspect(py: Python<'_>, source: Source) -> Result<Bound<'_, PyDict>, Failure> {
    let info = match source {
        Source::Bytes(data) => inspect_header(&mut &*data)?,
        // Without a buffer, which would keep what follows the header of a secret key.
        Source::Path(path) => py.detach(|| inspect_header(&mut open_file(&path)?)).map_err(file(&path))?,
    };
    Ok(describe(py, &info)?)
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
    out.set_item("key_identity", info.key.is_known().then(|| info.key.to_string()))?;
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
