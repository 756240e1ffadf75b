//! The shared library's own name: a program finds any library with the interface that it was linked with.

use std::env::var;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let part = |name: &str| var(format!("CARGO_PKG_VERSION_{name}")).unwrap_or_default();
    // Before 1.0 a minor version may change the interface.
    let interface = if part("MAJOR") == "0" { format!("0.{}", part("MINOR")) } else { part("MAJOR") };
    if var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libkeywright_client.so.{interface}");
    }
}
