use keywright_bfv::{PRESETS, preset};

use super::*;

/// Successive multiplications that a preset's estimate allows.
fn squares(party: &Party, n: usize) -> usize {
    let t = party.parameters.plaintext_modulus();
    let evaluator = party.evaluator();
    let mut x = random(n, t, 50);
    let mut a = party.encrypt(&x, Packing::Slots);
    let mut depth = 0;
    while let Ok(next) = evaluator.square(&a) {
        x = map2(&x, &x, |x, _| x * x % u128::from(t));
        (a, depth) = (next, depth + 1);
    }
    party.check("last power", &a, &x);
    depth
}

#[test]
fn presets_are_secure_and_as_deep_as_documented() {
    // The depths that docs/explanation/bfv.md lists.
    let depths = [1, 4, 9, 19];
    let mut seen = Vec::new();
    for p in &PRESETS {
        let parameters = BfvParameters::new(preset(p.name).unwrap().literal().unwrap()).unwrap();
        assert_eq!(parameters.security(), Security::Classical128);
        assert!(parameters.has_slots());
        let bits: f64 = (0..parameters.rlwe().prime_count()).map(|i| parameters.rlwe().log2_prime(i)).sum();
        assert_eq!(p.name, format!("N{}_QP{}_T{}", p.log_n, bits.ceil(), p.t_bits));
        // Key generation checks every key at the top level with all special primes.
        let party = Party::new(parameters, &[1]);
        seen.push((p.name, squares(&party, 1 << p.log_n)));
    }
    let expected: Vec<_> = PRESETS.iter().map(|p| p.name).zip(depths).collect();
    assert_eq!(seen, expected);
}

#[test]
fn the_largest_ring() {
    let t = 786_433;
    let party = Party::new(parameters(16, &[50, 50, 50], &[50], t), &[1]);
    let (x, y) = (random(1 << 16, t, 51), random(1 << 16, t, 52));
    let (a, b) = (party.encrypt(&x, Packing::Slots), party.encrypt(&y, Packing::Slots));
    let evaluator = party.evaluator();
    party.check("product", &evaluator.multiply(&a, &b).unwrap(), &map2(&x, &y, |x, y| x * y % u128::from(t)));
    let half = 1 << 15;
    let rotated: Vec<u64> = (0..1 << 16).map(|i| x[i / half * half + (i % half + 1) % half]).collect();
    party.check("rotated", &evaluator.rotate_rows(&a, 1).unwrap(), &rotated);
}
