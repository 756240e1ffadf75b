//! Tests of the whole module, on every instruction set of this CPU.

mod centred;
mod embedding;
mod errors;
mod integers;
mod known_answers;
mod slots;

use keywright_ring::BackendKind;
use num_complex::Complex64;

use super::Embedding;
use super::dispatch::Isa;

/// Unit roundoff of `f64`.
const U: f64 = f64::EPSILON / 2.0;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Between -1 and 1.
    fn unit(&mut self) -> f64 {
        (self.word() as i64 >> 11) as f64 / (1u64 << 52) as f64
    }

    fn complex(&mut self, count: usize) -> Vec<Complex64> {
        (0..count).map(|_| Complex64::new(self.unit(), self.unit())).collect()
    }
}

fn isas() -> Vec<Isa> {
    let mut instruction_sets: Vec<Isa> = Vec::new();
    for kind in [BackendKind::Portable, BackendKind::Avx2, BackendKind::Avx512] {
        let isa = Isa::at_most(kind);
        if !instruction_sets.contains(&isa) {
            instruction_sets.push(isa);
        }
    }
    instruction_sets
}

fn embeddings(log_n: u32) -> Vec<Embedding> {
    isas().into_iter().map(|isa| Embedding::with_isa(log_n, isa)).collect()
}

fn norm(z: &[Complex64]) -> f64 {
    z.iter().map(Complex64::norm_sqr).sum::<f64>().sqrt()
}
