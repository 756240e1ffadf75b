use pyo3::prelude::*;

/// Between two keys, handles signals, then passes the number of keys made and their total to `progress`. Either may
/// raise.
pub(crate) fn report(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    count: usize,
    total: usize,
) -> PyResult<()> {
    py.check_signals()?;
    if let Some(progress) = progress {
        progress.call1((count, total))?;
    }
    Ok(())
}
