//! Puts `memory.x` on the linker's search path, and makes the table of sines that a device has in flash memory.
//! Compiles the program in C if it is part of the build.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

#[path = "../sines.rs"]
mod sines;

/// Compiles crates/capi-bare/examples/known.c for the program that calls it.
fn compile(out: &Path) -> io::Result<()> {
    let bare = Path::new("../../crates/capi-bare");
    let (source, object) = (bare.join("examples/known.c"), out.join("known.o"));
    let done = Command::new("arm-none-eabi-gcc")
        .args([
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-O2",
            "-ffreestanding",
            "-mcpu=cortex-m4",
            "-mthumb",
        ])
        .args(["-mfloat-abi=soft", "-I../../crates/capi/include", "-I"])
        .arg(bare.join("include"))
        .arg("-c")
        .arg(&source)
        .arg("-o")
        .arg(&object)
        .status()?;
    if !done.success() {
        return Err(io::Error::other("known.c does not compile"));
    }
    println!("cargo::rustc-link-arg-bin=known_c={}", object.display());
    println!("cargo::rerun-if-changed={}", source.display());
    println!("cargo::rerun-if-changed={}", bare.join("include").display());
    Ok(())
}

fn main() -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("no OUT_DIR"))?);
    fs::copy("memory.x", out.join("memory.x"))?;
    sines::write(&out)?;
    if env::var_os("CARGO_FEATURE_C").is_some() {
        compile(&out)?;
    }
    println!("cargo::rustc-link-search={}", out.display());
    println!("cargo::rerun-if-changed=memory.x");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../sines.rs");
    Ok(())
}
