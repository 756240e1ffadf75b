//! Puts `memory.x` on the linker's search path, and makes the table of sines that a device has in flash memory.

use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("no OUT_DIR"))?);
    fs::copy("memory.x", out.join("memory.x"))?;
    let quarter = 1 << 15;
    let sine = |k| (f64::from(k) / f64::from(quarter) * std::f64::consts::FRAC_PI_2).sin();
    let table: Vec<u8> = (0..=quarter).flat_map(|k| sine(k).to_le_bytes()).collect();
    fs::write(out.join("sines.bin"), table)?;
    println!("cargo::rustc-link-search={}", out.display());
    println!("cargo::rerun-if-changed=memory.x");
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}
