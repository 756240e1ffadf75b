//! Against `vectors/bfv.txt`: results of SEAL, which a BFV of Python integers recomputes.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::env;
use std::path::PathBuf;
use std::process::Command;

use keywright_bfv::{
    BfvLiteral, BfvParameters, Ciphertext, Decryptor, Encryptor, Evaluator, Packing, Plaintext,
};
use keywright_ring::{rotation_element, sampling::SecretRng};
use keywright_ring_testing::samples::SplitMix64;
use keywright_rlwe::{KeyElement, KeyGenerator, KeySpec, SecretKey};
use zeroize::Zeroizing;

fn fold(words: &[u64]) -> u64 {
    words.iter().fold(0, |value: u64, &word| value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(word))
}

/// The operands of a program.
#[derive(Clone)]
enum Value {
    Ciphertext(Ciphertext),
    Plaintext(Plaintext),
}

fn run(evaluator: &Evaluator<'_>, program: &str, inputs: &[(&str, Value)]) -> Ciphertext {
    let mut stack: Vec<Value> = Vec::new();
    for token in program.split(' ') {
        if let Some((_, value)) = inputs.iter().find(|(name, _)| *name == token) {
            stack.push(value.clone());
            continue;
        }
        let last = stack.pop().unwrap();
        let result = match (token, stack.last(), &last) {
            ("+", Some(Value::Ciphertext(x)), Value::Ciphertext(y)) => evaluator.add(x, y),
            ("+", Some(Value::Ciphertext(x)), Value::Plaintext(p)) => evaluator.add_plain(x, p),
            ("-", Some(Value::Ciphertext(x)), Value::Ciphertext(y)) => evaluator.sub(x, y),
            ("-", Some(Value::Ciphertext(x)), Value::Plaintext(p)) => evaluator.sub_plain(x, p),
            ("*", Some(Value::Ciphertext(x)), Value::Ciphertext(y)) => evaluator.multiply(x, y),
            ("*", Some(Value::Ciphertext(x)), Value::Plaintext(p)) => evaluator.multiply_plain(x, p),
            ("~", _, Value::Ciphertext(x)) => evaluator.neg(x),
            ("|", _, Value::Ciphertext(x)) => evaluator.swap_rows(x),
            (rotation, _, Value::Ciphertext(x)) => {
                evaluator.rotate_rows(x, rotation.strip_prefix('<').unwrap().parse().unwrap())
            }
            _ => panic!("`{token}` is no operation on these values"),
        };
        if "+-*".contains(token) {
            stack.pop();
        }
        stack.push(Value::Ciphertext(result.unwrap()));
    }
    match stack.pop() {
        Some(Value::Ciphertext(result)) if stack.is_empty() => result,
        _ => panic!("`{program}` does not leave one ciphertext"),
    }
}

#[test]
fn programs_give_what_seal_gives() {
    let lines: Vec<&str> = include_str!("../../../vectors/bfv.txt").lines().collect();
    assert!(lines.len() >= 20);
    for pair in lines.chunks(2) {
        let fields: Vec<&str> = pair[0].splitn(6, ' ').collect();
        let ["case", log_n, t, packing, state, program] = fields[..] else { panic!("{}", pair[0]) };
        let (log_n, t) = (log_n.parse().unwrap(), t.parse().unwrap());
        let mut random = SplitMix64(state.parse().unwrap());
        let packing = if packing == "slots" { Packing::Slots } else { Packing::Coefficients };
        // The primes of the presets of this degree.
        let (q, p): (&[u32], &[u32]) =
            if log_n == 12 { (&[35, 35], &[36]) } else { (&[43, 43, 43, 42], &[43]) };
        let parameters = BfvParameters::new(BfvLiteral::from_bits(log_n, q, p, t).unwrap()).unwrap();
        let mut rng = SecretRng::from_entropy(&Zeroizing::new([9; 32]));
        let secret = SecretKey::sample(parameters.rlwe(), &mut rng).unwrap();
        let mut generator = KeyGenerator::new(&secret, rng.split().unwrap());
        let rotations = program.split(' ').filter_map(|token| token.strip_prefix('<'));
        let elements = rotations
            .map(|steps| KeyElement::Galois(rotation_element(log_n, steps.parse().unwrap())))
            .chain([KeyElement::Relinearization, KeyElement::Galois((2 << log_n) - 1)]);
        let spec = |element| KeySpec::new(parameters.rlwe(), element, parameters.max_level(), 1, true);
        let keys = generator.evaluation_keys(&elements.map(spec).collect::<Vec<_>>()).unwrap();
        let public = generator.public_key();
        let mut encryptor = Encryptor::new(&parameters, &public, rng).unwrap();
        let mut inputs = Vec::new();
        for name in ["a", "b", "p"] {
            let values: Vec<i64> = (0..1 << log_n).map(|_| (random.next_word() % t) as i64).collect();
            let plaintext = parameters.encode(&values, packing).unwrap();
            inputs.push(match name {
                "p" => (name, Value::Plaintext(plaintext)),
                _ => {
                    (name, Value::Ciphertext(encryptor.encrypt(&plaintext, parameters.max_level()).unwrap()))
                }
            });
        }
        let result = run(&Evaluator::new(&parameters, &keys).unwrap(), program, &inputs);
        let residues = Decryptor::new(&parameters, &secret).unwrap().decrypt(&result).unwrap().residues();
        let first: Vec<String> = residues[..4].iter().map(u64::to_string).collect();
        assert_eq!(format!("{:016x} {}", fold(&residues), first.join(" ")), pair[1], "{}", pair[0]);
    }
}

/// `vectors/bfv.py --check`: an implementation that shares nothing with this one or with SEAL.
#[test]
fn an_independent_implementation_agrees() {
    let python = env::var_os("PYO3_PYTHON").unwrap_or_else(|| "python3".into());
    let program = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/bfv.py");
    let output = Command::new(&python).arg(program).arg("--check").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
