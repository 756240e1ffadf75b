//! Parameters, and key switches against their definition.

use keywright_ring::{Evaluation, Poly, Seed, StreamId, rotation_element};
use keywright_ring_testing::rng;
use keywright_rlwe::derive::{MasterKeys, MasterParameters};
use keywright_rlwe::{
    Decomposed, Finish, KeyElement, Parameters, ParametersLiteral, RlweCiphertext, RlweError, SecretKey,
    SwitchingKey, UniformPart, decrypt, noise,
};

/// Small for speed, not secure.
pub(crate) fn insecure(log_n: u32, q: &[u32], p: &[u32]) -> Parameters {
    Parameters::new(ParametersLiteral::from_bits(log_n, q, p).unwrap().insecure()).unwrap()
}

pub(crate) fn uniform(parameters: &Parameters, level: usize, byte: u8) -> Poly<Evaluation> {
    let mut poly = Poly::unspecified(parameters.n(), level + 1);
    for (i, limb) in poly.limbs_mut().enumerate() {
        let id = StreamId { object: 99, digit: 0, limb: i as u16 };
        parameters.ring().backend().expand_uniform(&Seed([byte; 32]), id, parameters.modulus(i), limb);
    }
    poly
}

/// `c s'` modulo the first primes, where `s'` is the element's source secret, after the element's automorphism.
pub(crate) fn expected(
    secret: &SecretKey,
    element: KeyElement,
    c: &Poly<Evaluation>,
    source: Option<&SecretKey>,
) -> Poly<Evaluation> {
    let parameters = secret.parameters();
    let backend = parameters.ring().backend();
    let mut out = Poly::unspecified(c.n(), c.limb_count());
    for (i, limb) in out.limbs_mut().enumerate() {
        let m = parameters.modulus(i);
        let s = source.unwrap_or(secret).limb(i);
        backend.mul(m, c.limb(i), s, limb);
        match element {
            KeyElement::Galois(g) | KeyElement::SparseToDenseGalois { galois: g, .. } => {
                let input = limb.to_vec();
                backend.permute(&parameters.automorphism(g).unwrap(), &input, limb);
            }
            KeyElement::Relinearization => {
                let input = limb.to_vec();
                backend.mul(m, &input, s, limb);
            }
            KeyElement::Secret(_) | KeyElement::DenseToSparse(_) | KeyElement::SparseToDense(_) => {}
            other => unreachable!("{other} is tested with the rings"),
        }
    }
    out
}

/// Largest centred coefficient of `decrypt(switched) - expected`, which must be small at every prime.
pub(crate) fn error(secret: &SecretKey, switched: &RlweCiphertext, expected: &Poly<Evaluation>) -> f64 {
    let parameters = secret.parameters();
    let mut difference = switched.clone();
    for (i, limb) in difference.polys[0].limbs_mut().enumerate() {
        parameters.ring().backend().sub_assign(parameters.modulus(i), limb, expected.limb(i));
    }
    let limbs = difference.level() + 1;
    let coefficients = decrypt(secret, &difference, limbs);
    let first: Vec<i64> = coefficients.limb(0).iter().map(|&c| parameters.modulus(0).centered(c)).collect();
    for i in 1..limbs {
        let m = parameters.modulus(i);
        assert!(
            coefficients.limb(i).iter().zip(&first).all(|(&c, &f)| m.centered(c) == f),
            "prime {i} disagrees"
        );
    }
    first.iter().map(|c| c.unsigned_abs()).max().unwrap() as f64
}

pub(crate) fn switch(
    key: &SwitchingKey,
    c: &Poly<Evaluation>,
    coalesce: usize,
) -> Result<RlweCiphertext, RlweError> {
    let parameters = key.parameters();
    let plan = parameters.switch_plan(key.spec(), c.limb_count() - 1, coalesce, false)?;
    let decomposed = Decomposed::new(parameters, plan, c)?;
    let automorphism = match key.spec().element {
        KeyElement::Galois(g) => Some(parameters.automorphism(g)?),
        _ => None,
    };
    let finish = [Finish { addend: [None, None], automorphism: automorphism.as_deref() }];
    let rows = decomposed.rows_of(key, coalesce)?;
    Ok(decomposed.switch(&[(key, rows)], &finish).remove(0))
}

/// Switches a uniform polynomial; the error of the result, which must be within its bound, and the bound.
pub(crate) fn check_switch(
    secret: &SecretKey,
    key: &SwitchingKey,
    level: usize,
    coalesce: usize,
    source: Option<&SecretKey>,
) -> (f64, f64) {
    let parameters = secret.parameters();
    let c = uniform(parameters, level, level as u8 + 1);
    let switched = switch(key, &c, coalesce).unwrap();
    let plan = parameters.switch_plan(key.spec(), level, coalesce, false).unwrap();
    let seen = error(secret, &switched, &expected(secret, key.spec().element, &c, source));
    let bound = noise::bound(noise::key_switch(parameters, &plan, key));
    assert!(seen <= bound, "{:?} level {level} coalesce {coalesce}: error {seen} above {bound}", key.spec());
    // The bound is not vacuous: a typical maximum over N coefficients is 4 to 5 deviations of 9.
    assert!(seen >= bound / 6.0, "{:?}: error {seen} suspiciously below {bound}", key.spec());
    (seen, bound)
}

/// Master keys for the rotations by `steps`, a ladder.
pub(crate) fn masters(
    parameters: &Parameters,
    extra: &[u32],
    secret: &SecretKey,
    steps: &[i64],
) -> MasterKeys {
    let chain = MasterParameters::from_bits(parameters, extra).unwrap();
    let elements: Vec<u64> = steps.iter().map(|&k| rotation_element(parameters.log_n(), k)).collect();
    MasterKeys::generate(&chain, secret, rng(7), &elements, parameters.max_level()).unwrap()
}

pub(crate) fn same(a: &SwitchingKey, b: &SwitchingKey) -> bool {
    let uniform = match (a.uniform(), b.uniform()) {
        (UniformPart::Stored(a), UniformPart::Stored(b)) => a == b,
        (UniformPart::Seeded(a), UniformPart::Seeded(b)) => a.0 == b.0,
        _ => false,
    };
    uniform && a.spec() == b.spec() && a.b_rows() == b.b_rows() && a.error_variance() == b.error_variance()
}
