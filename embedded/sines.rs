//! The table of sines of the client of full modulus, for build scripts.

use std::path::Path;
use std::{fs, io};

/// Writes `sines.bin`: `sin(k pi / 2^16)` for `k = 0 .. 2^15`, doubles in little-endian order.
///
/// # Errors
///
/// What the file system says.
pub fn write(folder: &Path) -> io::Result<()> {
    let quarter = 1 << 15;
    let sine = |k| (f64::from(k) / f64::from(quarter) * std::f64::consts::FRAC_PI_2).sin();
    let table: Vec<u8> = (0..=quarter).flat_map(|k| sine(k).to_le_bytes()).collect();
    fs::write(folder.join("sines.bin"), table)
}
