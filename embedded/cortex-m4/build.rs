//! Puts `memory.x` on the linker's search path, and makes the table of sines that a device has in flash memory.

use std::path::PathBuf;
use std::{env, fs, io};

#[path = "../sines.rs"]
mod sines;

fn main() -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("no OUT_DIR"))?);
    fs::copy("memory.x", out.join("memory.x"))?;
    sines::write(&out)?;
    println!("cargo::rustc-link-search={}", out.display());
    println!("cargo::rerun-if-changed=memory.x");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../sines.rs");
    Ok(())
}
