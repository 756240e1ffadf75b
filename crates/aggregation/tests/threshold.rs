//! Sums that only a threshold of parties decrypts.
#![expect(clippy::unwrap_used, reason = "tests")]

use keywright_aggregation::AggregationError;
use keywright_aggregation::threshold::{
    KeyShare, MAX_SETS, MaskKey, Party, Question, ThresholdParameters, add, encrypt, finish, joint_public_key,
};
use keywright_ring::{Evaluation, Poly, Seed};
use keywright_ring_testing::rng;
use keywright_rlwe::{PublicKey, RlweCiphertext};
use zeroize::Zeroizing;

const SESSION: [u8; 16] = [7; 16];

/// The key that parties `i` and `j` share; for equal numbers the key that only party `i` has.
fn mask_key(i: u32, j: u32) -> MaskKey {
    let mut key = Zeroizing::new([1; 32]);
    key[..4].copy_from_slice(&i.min(j).to_le_bytes());
    key[4..8].copy_from_slice(&i.max(j).to_le_bytes());
    key
}

fn mask_keys(party: u32, parties: u32) -> Vec<MaskKey> {
    (1..=parties).map(|other| mask_key(party, other)).collect()
}

struct Group {
    parameters: ThresholdParameters,
    key: PublicKey,
    shares: Vec<KeyShare>,
}

impl Group {
    fn new(parties: u32, threshold: u32) -> Self {
        let parameters = ThresholdParameters::new(parties, threshold, 6, 1 << 20, 5000).unwrap();
        let seed = Seed([3; 32]);
        let members: Vec<_> =
            (0..parties).map(|i| Party::sample(&parameters, seed, &mut rng(i as u8)).unwrap()).collect();
        let halves: Vec<_> = members.iter().map(|member| member.public_half().clone()).collect();
        let key = joint_public_key(&parameters, seed, &halves).unwrap();
        let dealt: Vec<Vec<Poly<Evaluation>>> =
            members.iter().enumerate().map(|(i, member)| member.deal(&mut rng(100 + i as u8))).collect();
        let shares = (0..parties)
            .map(|j| {
                let received: Vec<_> = dealt.iter().map(|shares| shares[j as usize].clone()).collect();
                KeyShare::combine(&parameters, j + 1, &received, mask_keys(j + 1, parties)).unwrap()
            })
            .collect();
        Self { parameters, key, shares }
    }

    fn encrypt(&self, values: &[i64], byte: u8) -> Vec<RlweCiphertext> {
        encrypt(&self.parameters, &self.key, values, &mut rng(byte)).unwrap()
    }

    fn sum(&self, updates: &[Vec<RlweCiphertext>]) -> Vec<RlweCiphertext> {
        add(&self.parameters, &updates.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap()
    }

    fn partials(&self, sum: &[RlweCiphertext], active: &[u32]) -> Vec<Vec<Poly<Evaluation>>> {
        self.answers(sum, &Question { session: SESSION, round: 1, active })
    }

    fn answers(&self, sum: &[RlweCiphertext], question: &Question<'_>) -> Vec<Vec<Poly<Evaluation>>> {
        let parties = question.active.iter();
        parties.map(|&j| self.shares[j as usize - 1].partial(sum, question).unwrap()).collect()
    }

    /// The coefficients of a polynomial over both primes, around 0.
    fn centered(&self, poly: Poly<Evaluation>) -> Vec<i128> {
        let rlwe = self.parameters.rlwe();
        let poly = rlwe.ring().inverse(poly);
        let (q0, q1) = (i128::from(rlwe.modulus(0).value()), rlwe.modulus(1));
        let inverse = q1.inv(q1.reduce(q0 as u64));
        let q = q0 * i128::from(q1.value());
        let pairs = poly.limb(0).iter().zip(poly.limb(1));
        pairs
            .map(|(&x0, &x1)| {
                let high = q1.mul(q1.sub(x1, q1.reduce(x0)), inverse);
                let x = i128::from(x0) + q0 * i128::from(high);
                if x > q / 2 { x - q } else { x }
            })
            .collect()
    }

    fn combine(&self, mut total: Poly<Evaluation>, other: &Poly<Evaluation>, add: bool) -> Poly<Evaluation> {
        let rlwe = self.parameters.rlwe();
        for (i, limb) in total.limbs_mut().enumerate() {
            let (modulus, backend) = (rlwe.modulus(i), rlwe.ring().backend());
            if add {
                backend.add_assign(modulus, limb, other.limb(i));
            } else {
                backend.sub_assign(modulus, limb, other.limb(i));
            }
        }
        total
    }

    fn finish(
        &self,
        sum: &[RlweCiphertext],
        partials: &[Vec<Poly<Evaluation>>],
        inputs: u32,
        count: usize,
    ) -> Result<Vec<i64>, AggregationError> {
        let partials: Vec<_> = partials.iter().map(Vec::as_slice).collect();
        finish(&self.parameters, sum, &partials, inputs, count).map(|values| values.to_vec())
    }
}

#[test]
fn any_threshold_of_parties_decrypts_exactly() {
    let group = Group::new(5, 3);
    let n = group.parameters.rlwe().n();
    for count in [1, n - 1, n, n + 1, 5000] {
        let largest = 1i64 << 20;
        let vectors: Vec<Vec<i64>> = (0..6i64)
            .map(|k| {
                (0..count as i64)
                    .map(|i| {
                        [largest, -largest, (i * 7919 + k * 104_729) % largest, -(i % 13)][(i % 4) as usize]
                    })
                    .collect()
            })
            .collect();
        let updates: Vec<_> =
            vectors.iter().enumerate().map(|(k, values)| group.encrypt(values, k as u8)).collect();
        let sum = group.sum(&updates);
        let expected: Vec<i64> = (0..count).map(|i| vectors.iter().map(|values| values[i]).sum()).collect();
        let sets: &[[u32; 3]] =
            if count == n + 1 { &[[1, 2, 3], [5, 1, 4], [2, 5, 3], [3, 4, 5]] } else { &[[4, 2, 1]] };
        for active in sets {
            let partials = group.partials(&sum, active);
            assert_eq!(group.finish(&sum, &partials, 6, count).unwrap(), expected, "{active:?}");
        }
    }
}

/// A party that vanishes before it decrypts is replaced, and others decrypt the same sum.
#[test]
fn dropouts_cost_another_set_and_no_more() {
    let group = Group::new(4, 2);
    let sum = group.sum(&[group.encrypt(&[5, -7], 1), group.encrypt(&[10, 20], 2)]);
    let mut partials = group.partials(&sum, &[1, 2]);
    partials.truncate(1);
    assert!(matches!(
        group.finish(&sum, &partials, 2, 2),
        Err(AggregationError::Range { value: 1, min: 2, .. })
    ));
    assert_eq!(group.finish(&sum, &group.partials(&sum, &[1, 4]), 2, 2).unwrap(), [15, 13]);
}

#[test]
fn fewer_parties_mixed_sets_and_foreign_parts_do_not_decrypt() {
    let group = Group::new(4, 3);
    let updates = [group.encrypt(&[5; 4000], 1), group.encrypt(&[6; 4000], 2)];
    let sum = group.sum(&updates);
    let undecodable = |partials: &[Vec<Poly<Evaluation>>]| {
        let refused = group.finish(&sum, partials, 2, 4000).err();
        assert_eq!(refused, Some(AggregationError::Undecodable { inputs: 2 }));
    };
    let whole = group.partials(&sum, &[1, 2, 3]);
    assert!(group.finish(&sum, &whole, 2, 4000).is_ok());
    // Two parts of three, the third one forged as zero.
    let zero = vec![Poly::zero(group.parameters.rlwe().n(), 2); sum.len()];
    undecodable(&[whole[0].clone(), whole[1].clone(), zero]);
    // Parts for different sets.
    let other = group.partials(&sum, &[1, 2, 4]);
    undecodable(&[whole[0].clone(), whole[1].clone(), other[2].clone()]);
    // Parts of another sum.
    let single = group.partials(&updates[0], &[1, 2, 3]);
    undecodable(&[whole[0].clone(), whole[1].clone(), single[2].clone()]);
    // A claim of fewer updates than were added is detected.
    let partials = group.partials(&sum, &[1, 2, 3]);
    assert_eq!(group.finish(&sum, &partials, 2, 4000).unwrap(), [11; 4000]);
}

/// The summed answers of a whole set for two rounds differ by smudging of the declared size.
#[test]
fn smudging_has_the_declared_size() {
    let group = Group::new(3, 2);
    let sum = group.encrypt(&[0; 10], 1);
    let p = &group.parameters;
    let total = |round| {
        let mut answers = group.answers(&sum, &Question { session: SESSION, round, active: &[1, 2] });
        let second = answers.pop().unwrap().remove(0);
        group.combine(answers.pop().unwrap().remove(0), &second, true)
    };
    let (mut widest, mut squares) = (0, 0.0);
    for x in group.centered(group.combine(total(1), &total(2), false)) {
        widest = widest.max(x.abs());
        let unit = x as f64 / (1u128 << p.smudging_bits()) as f64;
        squares += unit * unit;
    }
    assert!(widest < 2 << p.smudging_bits());
    // Four uniform numbers on an interval of length 1: the variance of their sum is 1/3 and that of its square 17/90.
    let n = p.rlwe().n() as f64;
    let deviation = (17.0 / 90.0 / n).sqrt();
    assert!((squares / n - 1.0 / 3.0).abs() < 6.0 * deviation, "{}", squares / n);
    let coefficients = p.error_bound() * p.rlwe().n() as u128;
    assert!(u128::from(MAX_SETS) * coefficients <= 1 << (p.smudging_bits() - 40));
}

/// One party's answers alone are uniform, and so are the differences of those to one sum: nothing small remains.
#[test]
fn an_answer_alone_is_uniform() {
    let group = Group::new(5, 3);
    let sum = group.encrypt(&[0; 10], 1);
    let rlwe = group.parameters.rlwe();
    let q = i128::from(rlwe.modulus(0).value()) * i128::from(rlwe.modulus(1).value());
    let answer = |round, active: &[u32]| {
        group.shares[0].partial(&sum, &Question { session: SESSION, round, active }).unwrap().remove(0)
    };
    let first = answer(1, &[1, 2, 3]);
    let others = [answer(1, &[1, 2, 4]), answer(1, &[1, 4, 5]), answer(2, &[1, 2, 3])];
    let differences = others.iter().map(|other| group.combine(first.clone(), other, false));
    for poly in differences.chain([first.clone()]) {
        let small = group.centered(poly).iter().filter(|x| x.abs() < q / 64).count() as f64;
        // Binomial with probability 1/32.
        let n = rlwe.n() as f64;
        assert!((small - n / 32.0).abs() < 6.0 * (n / 32.0).sqrt(), "{small} of {n}");
    }
}

/// The same question has the same answer for any order of its parties; every other question has another answer.
#[test]
fn answers_are_a_function_of_the_question() {
    let group = Group::new(4, 3);
    let sums = [group.encrypt(&[1], 1), group.encrypt(&[1], 2)];
    let ask = |party: usize, sum: usize, session, round, active: &[u32]| {
        group.shares[party].partial(&sums[sum], &Question { session, round, active }).unwrap().remove(0)
    };
    let first = ask(0, 0, SESSION, 5, &[1, 2, 3]);
    assert!(first == ask(0, 0, SESSION, 5, &[3, 1, 2]));
    let others = [
        ask(0, 0, [8; 16], 5, &[1, 2, 3]),
        ask(0, 0, SESSION, 6, &[1, 2, 3]),
        ask(0, 0, SESSION, 5, &[1, 2, 4]),
        ask(0, 1, SESSION, 5, &[1, 2, 3]),
    ];
    for other in others {
        assert!(first.words().iter().zip(other.words()).filter(|(a, b)| a == b).count() < 2);
    }
}

/// The error before smudging stays below its bound, as seen with the joint secret, which no party has.
#[test]
fn a_secret_is_the_sum_of_shares_and_errors_are_bounded() {
    let group = Group::new(3, 2);
    let p = &group.parameters;
    let sum = group.sum(&[group.encrypt(&[9, -9], 1), group.encrypt(&[1, 1], 2)]);
    let rlwe = p.rlwe();
    let weights = |i: usize| {
        let m = rlwe.modulus(i);
        // Lagrange coefficients of {1, 3} at 0: 3/2 and -1/2.
        let half = m.inv(2);
        (m.mul(3, half), m.neg(half))
    };
    let mut total = sum[0].polys[0].clone();
    for (i, limb) in total.limbs_mut().enumerate() {
        let (m, (first, third)) = (rlwe.modulus(i), weights(i));
        let (one, three) = (group.shares[0].share().limb(i), group.shares[2].share().limb(i));
        for (k, word) in limb.iter_mut().enumerate() {
            let secret = m.add(m.mul(one[k], first), m.mul(three[k], third));
            *word = m.add(*word, m.mul(secret, sum[0].polys[1].limb(i)[k]));
        }
    }
    let total = rlwe.ring().inverse(total);
    // Beyond the values there is only error, which is far below either prime. Two of six updates have 1 / sqrt(3) of
    // the deviation, of which the bound is about ten times; the largest of N errors is about four of their deviations.
    let errors = total.limb(0)[2..].iter().map(|&word| rlwe.modulus(0).centered(word).unsigned_abs());
    let largest = errors.max().unwrap();
    assert!(u128::from(largest) <= p.error_bound());
    assert!(u128::from(largest) > p.error_bound() / 12, "{largest} of {}", p.error_bound());
    assert!(largest < rlwe.modulus(0).value() / 4);
}

#[test]
fn shapes_and_numbers_are_checked() {
    let group = Group::new(3, 2);
    let sum = group.encrypt(&[1, 2], 1);
    let share = &group.shares[0];
    for active in [&[1][..], &[1, 1], &[2, 3], &[1, 4], &[0, 1], &[1, 2, 3], &[]] {
        let refused = share.partial(&sum, &Question { session: SESSION, round: 1, active });
        assert!(matches!(refused, Err(AggregationError::Range { .. })), "{active:?}");
    }
    assert!(share.partial(&[], &Question { session: SESSION, round: 1, active: &[1, 2] }).is_err());
    let p = &group.parameters;
    let encrypt_one = |values: &[i64]| encrypt(p, &group.key, values, &mut rng(1));
    assert!(matches!(encrypt_one(&[1 << 21]), Err(AggregationError::Magnitude { index: 0, .. })));
    assert!(matches!(encrypt_one(&[]), Err(AggregationError::Range { .. })));
    assert!(matches!(encrypt_one(&[0; 5001]), Err(AggregationError::Range { max: 5000, .. })));
    assert!(add(p, &[]).is_err());
    let long = group.encrypt(&[0; 5000], 1);
    assert!(add(p, &[&sum, &long]).is_err());
    assert!(add(p, &[&sum[..]; 7]).is_err());
    let partials = group.partials(&sum, &[1, 2]);
    assert!(group.finish(&sum, &partials, 1, 5000).is_err());
    assert!(group.finish(&sum, &partials, 7, 2).is_err());
    assert!(group.finish(&sum, &partials, 0, 2).is_err());
    assert!(KeyShare::combine(p, 1, &[], mask_keys(1, 3)).is_err());
    assert!(KeyShare::new(p, 4, share.share().clone(), mask_keys(4, 3)).is_err());
    assert!(KeyShare::new(p, 1, share.share().clone(), mask_keys(1, 2)).is_err());
    assert!(KeyShare::new(p, 1, Poly::zero(1 << 11, 2), mask_keys(1, 3)).is_err());
    let mut equal = mask_keys(1, 3);
    equal[2] = equal[0].clone();
    let refused = KeyShare::new(p, 1, share.share().clone(), equal).unwrap_err();
    assert_eq!(refused, AggregationError::RepeatedKey { parties: [1, 3] });
    assert!(joint_public_key(p, Seed([0; 32]), &[]).is_err());
    let other = ThresholdParameters::new(3, 2, 6, 1 << 30, 5000).unwrap();
    assert!(!other.rlwe().same(p.rlwe()));
    assert!(matches!(encrypt(&other, &group.key, &[1], &mut rng(1)), Err(AggregationError::Rlwe(_))));
    assert!(format!("{share:?}").ends_with("..)"));
}
