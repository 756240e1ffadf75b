//! Compiles the C example against the header and the library, and runs it. The header declares what the library
//! exports.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use keywright_ckks::{CkksLiteral, CkksParameters};
use keywright_client::{Client, ClientLiteral, ClientParameters, Layout, SystemEntropy};
use keywright_ring::rotation_element;
use keywright_rlwe::{KeyElement, KeySpec, SecretDistribution};
use keywright_thin_server as server;
use keywright_wire::{KeySetReader, KeySetWriter, Wire};

const HEADER: &str = include_str!("../include/keywright_client.h");

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

/// A server that computes nothing: the class of a picture is its brightest pixel.
#[test]
fn a_picture_goes_out_and_its_class_comes_back() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("classify");
    fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| folder.join(name);
    let program = file("classify");
    compile(&["examples/classify.c"], &program);

    let literal = CkksLiteral::from_bits(10, &[50, 40, 40], &[50], 40.0).unwrap().insecure();
    let parameters = CkksParameters::new(literal.clone()).unwrap();
    let rlwe = parameters.rlwe();
    let rotation = KeyElement::Galois(rotation_element(10, 3));
    let specs =
        [rotation, KeyElement::Relinearization].map(|element| KeySpec::new(rlwe, element, 2, 1, true));
    let mut head = Vec::new();
    drop(KeySetWriter::new(&mut head, &specs, rlwe).unwrap());
    fs::write(file("parameters.kw"), literal.to_bytes(&()).unwrap()).unwrap();
    fs::write(file("keys.kw"), &head).unwrap();
    let thin = server::parameters_at(&parameters, 1 << 40, 24, Layout::Coefficients).unwrap();
    let mut client = Vec::new();
    thin.write_to(&mut client).unwrap();
    fs::write(file("client.kw"), client).unwrap();
    // Inputs are divided by 2. There are six pixels in two ciphertexts of four places, the second half of each a copy;
    // the answer is in the first.
    let places = "1\n2 1024 2 512 6\n0 1 2 1024 1025 1026\n2 1024 1 1 6\n0 1 2 1024 1025 1026\n";
    fs::write(file("places.txt"), format!("{places}a\nb\nc\nd\nblue sky\nf\n")).unwrap();
    fs::write(
        file("image.pgm"),
        [&b"P5 # three by two\n3 2\n255\n"[..], &[9, 200, 0, 13, 201, 100]].concat(),
    )
    .unwrap();

    let run = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command
            .args(["--insecure", arguments[0]])
            .arg(&folder)
            .args(arguments[1..].iter().map(|name| file(name)));
        let out = command.output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        (out.status.success(), said)
    };
    let strict =
        |name| Command::new(&program).arg("keys").arg(&folder).args([file(name), file("no_set.kw")]).output();
    let said = String::from_utf8_lossy(&strict("no_secret.kw").unwrap().stderr).into_owned();
    assert!(said.contains("less than 128 bits") && said.contains("KW_INSECURE"), "{said}");
    assert!(!file("no_secret.kw").exists() && !file("no_set.kw").exists());

    assert_eq!(run(&["keys", "secret.kw", "set.kw"]), (true, String::new()));
    let set = fs::read(file("set.kw")).unwrap();
    assert!(set.starts_with(&head));
    let keys: Result<Vec<_>, _> = KeySetReader::new(&set[..], rlwe).unwrap().collect();
    assert!(keys.unwrap().iter().map(|key| key.spec()).eq(&specs));

    assert_eq!(run(&["encrypt", "secret.kw", "image.pgm", "message"]), (true, String::new()));
    let mut owner =
        Client::from_secret_bytes(&thin, &fs::read(file("secret.kw")).unwrap(), &mut SystemEntropy).unwrap();
    let mut sent_numbers = [vec![0; 1024], vec![0; 1024]];
    let (message, mut answer) = (fs::read(file("message")).unwrap(), Vec::new());
    let mut rest = &message[..];
    let mut rows = sent_numbers.iter_mut();
    while let Some((length, after)) = rest.split_first_chunk() {
        let (sent, after) = after.split_at(u32::from_le_bytes(*length) as usize);
        let ciphertext = server::read_upload(sent, &parameters, &thin).unwrap();
        let mut bytes = Vec::new();
        server::write_answer(&ciphertext, thin.layout(), [9, 3], &mut bytes).unwrap();
        owner.decrypt(&bytes, rows.next().unwrap()).unwrap();
        answer.extend((bytes.len() as u32).to_le_bytes());
        answer.extend(bytes);
        rest = after;
    }
    // Errors are below half a unit, so half of each pixel comes back as it was rounded.
    for (row, pixels) in sent_numbers.iter().zip([[9_i64, 200, 0], [13, 201, 100]]) {
        let rounded = pixels.map(|pixel| ((pixel << 24) + 255) / 510);
        assert_eq!((&row[..3], &row[512..515]), (&rounded[..], &rounded[..]));
    }
    fs::write(file("answer"), &answer).unwrap();
    assert_eq!(run(&["decrypt", "secret.kw", "answer"]), (true, "4 blue sky\n".into()));

    fs::write(file("cut"), &answer[..answer.len() - 1]).unwrap();
    fs::write(file("wide.pgm"), b"P5 4 2 255\n12345678").unwrap();
    fs::write(file("text.pgm"), b"P2 3 2 255\n1 2 3 4 5 6").unwrap();
    assert!(run(&["keys", "other.kw", "other_set.kw"]).0);
    for (arguments, what) in [
        (&["decrypt", "secret.kw", "cut"][..], "ends early"),
        (&["encrypt", "secret.kw", "wide.pgm", "none"], "another size"),
        (&["encrypt", "secret.kw", "text.pgm", "none"], "no binary PGM"),
        (&["encrypt", "set.kw", "image.pgm", "none"], "refused"),
        (&["decrypt", "missing.kw", "answer"], "cannot be opened"),
        (&["decrypt", "other.kw", "answer"], "refused"),
        (&["nothing"], "usage"),
    ] {
        let (success, said) = run(arguments);
        assert!(!success && said.contains(what), "{arguments:?}: {said}");
    }
    fs::write(file("keys.kw"), &head[..head.len() - 5]).unwrap();
    let (success, said) = run(&["keys", "secret.kw", "set.kw"]);
    assert!(!success && said.contains("refused"), "{said}");
}

/// A file of parameters of a client at `N = 2^12`.
fn client_parameters(folder: &Path) -> PathBuf {
    let mut identity = [0; 20];
    identity[0] = 12;
    let parameters = ClientParameters::new(ClientLiteral {
        log_n: 12,
        modulus: (1 << 60) - (1 << 18) + 1,
        secret: SecretDistribution::Ternary,
        scale: 1 << 54,
        fraction_bits: 30,
        max: 1 << 30,
        layout: Layout::Slots { log_slots: 11, complex: true },
        identity,
        entry_identity: identity,
        estimate: [0; 3],
    })
    .unwrap();
    let mut bytes = Vec::new();
    parameters.write_to(&mut bytes).unwrap();
    let file = folder.join("client_parameters.kw");
    fs::write(&file, bytes).unwrap();
    file
}

#[test]
fn the_example_runs() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (file, program) = (client_parameters(&folder), folder.join("client_example"));
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
    let lines = include_str!("../../../vectors/client.txt").lines();
    let mut seen = 0;
    for line in lines.filter(|line| line.split(' ').nth(1).unwrap().parse::<u64>().unwrap() >> 30 == 0) {
        let f: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        let mut identity = [0xA5; 20];
        identity[..4].copy_from_slice(&[f[0] as u8, 1, 0, 1]);
        let literal = ClientLiteral {
            log_n: f[0] as u32,
            modulus: f[1],
            secret: SecretDistribution::Ternary,
            scale: f[2],
            fraction_bits: f[3] as u32,
            max: 1 << f[3],
            layout: match f[4] {
                0 => Layout::Coefficients,
                form => Layout::Slots { log_slots: f[5] as u32, complex: form == 2 },
            },
            identity,
            entry_identity: identity,
            estimate: [1.0, 2.0, 3.0].map(f64::to_bits),
        };
        let mut bytes = Vec::new();
        ClientParameters::new(literal).unwrap().write_to(&mut bytes).unwrap();
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
    let (file, program) = (client_parameters(&folder), folder.join("fork"));
    compile(&["tests/fork.c"], &program);
    let run = Command::new(&program).arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && said == "apart\n", "{said}");
}

#[test]
fn the_header_declares_what_the_library_has() {
    let source = include_str!("../src/lib.rs");
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
