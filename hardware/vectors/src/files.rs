//! Files of words.

use std::fs;
use std::path::Path;

/// Writes a polynomial's words to `FOLDER/NAME.words`.
pub(crate) fn write_words(folder: &Path, name: &str, words: &[u64]) -> Result<(), String> {
    let path = folder.join(name).with_extension("words");
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&path, bytes))
        .map_err(|e| format!("{}: {e}", path.display()))
}

/// Reads the `count` words of `FOLDER/NAME.words`.
pub(crate) fn read_words(folder: &Path, name: &str, count: usize) -> Result<Vec<u64>, String> {
    let path = folder.join(name).with_extension("words");
    let bytes = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    if bytes.len() != 8 * count {
        return Err(format!("{} has {} bytes, not {}", path.display(), bytes.len(), 8 * count));
    }
    Ok(bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
}
