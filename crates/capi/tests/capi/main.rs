//! Compiles the C example against the header and the library, and runs it. The header declares what the library
//! exports.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use keywright_client::{ClientLiteral, ClientParameters, Layout};
use keywright_rlwe::SecretDistribution;

mod alone;
#[path = "../../../client/tests/client/line.rs"]
mod line;

const HEADER: &str = include_str!("../../include/keywright_client.h");

/// The static library that cargo built with this test.
fn library() -> PathBuf {
    let test = env::current_exe().unwrap();
    test.ancestors().map(|folder| folder.join("libkeywright_capi.a")).find(|path| path.exists()).unwrap()
}

fn compile(sources: &[&str], program: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let compiled = Command::new(env::var("CC").unwrap_or_else(|_| "cc".into()))
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-I"])
        .arg(root.join("include"))
        .arg("-I")
        .arg(root.join("../capi-bare/include"))
        .args(sources.iter().map(|source| root.join(source)))
        .arg(library())
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(program)
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}

/// The parameters of a client at `N = 2^12`.
fn client_parameters(layout: Layout) -> Vec<u8> {
    let mut identity = [0; 20];
    identity[0] = 12;
    let parameters = ClientParameters::new(ClientLiteral {
        log_n: 12,
        modulus: (1 << 60) - (1 << 18) + 1,
        secret: SecretDistribution::Ternary,
        scale: 1 << 54,
        fraction_bits: 30,
        max: 1 << 30,
        layout,
        identity,
        entry_identity: identity,
        estimate: [0; 3],
    })
    .unwrap();
    let mut bytes = Vec::new();
    parameters.write_to(&mut bytes).unwrap();
    bytes
}

/// A file of such parameters, with slots.
fn parameter_file(folder: &Path) -> PathBuf {
    let file = folder.join("client_parameters.kw");
    fs::write(&file, client_parameters(Layout::Slots { log_slots: 11, complex: true })).unwrap();
    file
}

#[test]
fn the_example_runs() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (file, program) = (parameter_file(&folder), folder.join("client_example"));
    compile(&["examples/client.c"], &program);
    let run = Command::new(&program).arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
    // 9 deviations of a fresh error at N = 2^12 are below 2^13 of the scale's 2^54: below one unit of 2^-30.
    assert!(said.contains("4096 numbers") && said.contains("largest error 0 of 1073741824"), "{said}");
}

/// The program for devices: every object of `vectors/client.txt` with a prime of 30 bits.
#[test]
fn the_program_for_devices_makes_the_known_objects() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("known");
    fs::create_dir_all(&folder).unwrap();
    let (file, program) = (folder.join("parameters.kw"), folder.join("known"));
    compile(&["../capi-bare/examples/known.c", "tests/known.c"], &program);
    let mut seen = 0;
    for f in line::lines().into_iter().filter(|f| f[1] >> 30 == 0) {
        let mut bytes = Vec::new();
        line::parameters(&f).write_to(&mut bytes).unwrap();
        fs::write(&file, bytes).unwrap();
        let answers = f[6..].iter().map(u64::to_string);
        let status = Command::new(&program).arg(&file).arg(f[3].to_string()).args(answers).status().unwrap();
        assert_eq!(status.code(), Some(0), "N = 2^{}: the step that fails", f[0]);
        seen += 1;
    }
    assert!(seen > 1, "no vectors of 30 bits");
}

#[test]
#[cfg(unix)]
fn children_of_a_process_draw_apart() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fork");
    fs::create_dir_all(&folder).unwrap();
    let (file, program) = (parameter_file(&folder), folder.join("fork"));
    compile(&["tests/fork.c"], &program);
    let run = Command::new(&program).arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && said == "apart\n", "{said}");
}

#[test]
fn the_header_declares_what_the_library_has() {
    let source = include_str!("../../src/lib.rs");
    let defined = source.lines().filter_map(|line| line.split("extern \"C\" fn kw_").nth(1));
    let mut count = 0;
    for name in defined.map(|rest| rest.split('(').next().unwrap()) {
        assert!(HEADER.contains(&format!("kw_{name}(")), "kw_{name} is not declared");
        count += 1;
    }
    let declared = HEADER.matches(");\n").count() - HEADER.matches("typedef int (*").count();
    assert_eq!(count, declared, "declared and not defined");
    for line in source.lines() {
        if let Some((name, value)) =
            line.strip_prefix("const ").and_then(|rest| rest.split_once(": c_int = "))
        {
            let value = value.trim_end_matches(';');
            let define = if name == "OK" {
                format!("#define KW_OK {value}\n")
            } else {
                format!("#define KW_ERROR_{name} ({value})\n")
            };
            assert!(HEADER.contains(&define), "{define}");
        }
    }
}
