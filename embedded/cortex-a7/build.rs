//! Makes the table of sines that a device has in flash memory.

use std::path::PathBuf;
use std::{env, io};

#[path = "../sines.rs"]
mod sines;

fn main() -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("no OUT_DIR"))?);
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../sines.rs");
    sines::write(&out)
}
