//! The files of `vectors/wire`: this version writes the same bytes, and reads them.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use keywright_ring::sampling::SecretRng;
use keywright_ring::{Poly, StreamId};
use keywright_rlwe::{KeyElement, KeyGenerator, KeySpec, UniformPart};
use keywright_wire::FORMAT_VERSION;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::samples;

fn vectors() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/wire")
}

fn hex(digest: impl AsRef<[u8]>) -> String {
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `sha256sum` lines: digest, two spaces, name.
fn lines(list: Vec<(String, String)>) -> String {
    list.into_iter().map(|(name, digest)| format!("{digest}  {name}\n")).collect()
}

fn digest_of_words<D: keywright_ring::Domain>(poly: &Poly<D>) -> String {
    let bytes: Vec<u8> = poly.words().iter().flat_map(|word| word.to_le_bytes()).collect();
    hex(Sha256::digest(bytes))
}

/// Digests of uniform halves as users of this crate get them, expanded from their seeds.
fn expanded() -> String {
    let c = samples::ckks_parameters();
    let (p, b) = (c.rlwe(), samples::bfv_parameters(&samples::literal()));
    let list = [
        ("public_key.kw", digest_of_words(samples::public_key(p).a())),
        ("rlwe_ciphertext_seeded.kw", digest_of_words(&samples::seeded_ciphertext(p).expand(p).polys[1])),
        ("ckks_ciphertext_seeded.kw", digest_of_words(&samples::ckks_seeded(&c).expand().rlwe.polys[1])),
        ("bfv_ciphertext_seeded.kw", digest_of_words(&samples::bfv_seeded(&b).expand().rlwe.polys[1])),
    ];
    lines(list.map(|(name, digest)| (name.into(), digest)).into())
}

/// With `KEYWRIGHT_WRITE_VECTORS` set it writes the files, for a new format version; otherwise it compares them.
#[test]
fn files_of_this_version_have_not_changed() {
    let directory = vectors().join(format!("v{FORMAT_VERSION}"));
    let samples = samples::all(&samples::ckks_parameters());
    let sums =
        lines(samples.iter().map(|s| (format!("{}.kw", s.name), hex(Sha256::digest(&s.bytes)))).collect());
    let mut files: Vec<(String, Vec<u8>)> =
        samples.into_iter().map(|sample| (format!("{}.kw", sample.name), sample.bytes)).collect();
    files.push(("SHA256SUMS".into(), sums.into_bytes()));
    files.push(("EXPANDED_SHA256SUMS".into(), expanded().into_bytes()));
    for (name, bytes) in files {
        let path = directory.join(&name);
        if env::var_os("KEYWRIGHT_WRITE_VECTORS").is_some() {
            fs::write(&path, &bytes).unwrap();
        }
        assert!(fs::read(&path).unwrap() == bytes, "{name} differs from what this version writes");
    }
}

/// A file loads as the object of its name.
#[test]
fn files_load() {
    let c = samples::ckks_parameters();
    for sample in samples::all(&c) {
        let file = format!("v{FORMAT_VERSION}/{}.kw", sample.name);
        let bytes = fs::read(vectors().join(&file)).unwrap();
        assert!((sample.reload)(&bytes, &c).unwrap() == sample.bytes, "{file}");
    }
}

/// The streams of switching keys follow `docs/reference/format.md`: a stored twin of a seeded key shows its uniform
/// half.
#[test]
fn seeded_keys_expand_as_described() {
    let p = samples::parameters();
    let secret = samples::secret_key(&p);
    let key = |element, seeded| {
        let rng = SecretRng::from_entropy(&Zeroizing::new([4; 32]));
        let spec = KeySpec::new(&p, element, 1, 1, seeded);
        match element {
            KeyElement::Secret(id) => {
                KeyGenerator::new(&secret, rng).switching_key_from(&secret, id, &spec).unwrap()
            }
            KeyElement::DenseToSparse(weight) | KeyElement::SparseToDense(weight) => {
                let to_sparse = KeySpec { element: KeyElement::DenseToSparse(weight), ..spec.clone() };
                let to_dense = KeySpec { element: KeyElement::SparseToDense(weight), ..spec };
                let mut generator = KeyGenerator::new(&secret, rng);
                let pair = generator.switching_keys(&[to_sparse, to_dense]).unwrap();
                pair.map(Result::unwrap).find(|key| key.spec().element == element).unwrap()
            }
            KeyElement::SparseToDenseGalois { weight, .. } => {
                let to_sparse = KeySpec { element: KeyElement::DenseToSparse(weight), ..spec.clone() };
                let mut generator = KeyGenerator::new(&secret, rng);
                let list = [to_sparse, spec];
                generator.switching_keys(&list).unwrap().last().unwrap().unwrap()
            }
            _ => KeyGenerator::new(&secret, rng).switching_key(&spec).unwrap(),
        }
    };
    for (element, object) in [
        (KeyElement::Galois(5), 5),
        (KeyElement::Relinearization, 1 << 40),
        (KeyElement::Secret(1 << 40 | 9), 2 << 40 | 9),
        (KeyElement::DenseToSparse(32), 5 << 40 | 32),
        (KeyElement::SparseToDense(32), 6 << 40 | 32),
        (KeyElement::SparseToDenseGalois { weight: 32, galois: 25 }, 7 << 40 | 25 << 20 | 32),
    ] {
        let (seeded, stored) = (key(element, true), key(element, false));
        assert!(seeded.b_rows() == stored.b_rows());
        let (UniformPart::Seeded(seed), UniformPart::Stored(rows)) = (seeded.uniform(), stored.uniform())
        else {
            panic!("the keys are not what was asked for");
        };
        for (digit, row) in rows.iter().enumerate() {
            for (limb, prime) in row.limbs().zip(seeded.spec().primes()) {
                let id = StreamId { object, digit: digit as u8, limb: prime as u16 };
                let mut expected = vec![0; p.n()];
                p.ring().backend().expand_uniform(seed, id, p.modulus(prime), &mut expected);
                assert!(limb == expected, "{element}, digit {digit}, prime {prime}");
            }
        }
    }
}

/// `vectors/wire/decode.py`, written from `docs/reference/format.md` without this project's code, reads the same
/// values.
#[test]
fn an_independent_decoder_agrees() {
    let python = env::var_os("PYO3_PYTHON").unwrap_or_else(|| "python3".into());
    let output = Command::new(&python).arg(vectors().join("decode.py")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text, "v2: 22 files agree\n");
}
