//! Answers of an index against inner products that are computed one by one.
#![expect(clippy::unwrap_used, reason = "tests")]

use keywright_bfv::{BfvError, BfvLiteral, BfvParameters, Decryptor, Encryptor, Evaluator, Packing};
use keywright_ring::backend;
use keywright_ring::sampling::SecretRng;
use keywright_rlwe::{EvaluationKeys, KeyElement, KeyGenerator, KeySpec, SecretKey};
use keywright_search::{
    Answer, AnswerShape, EncryptedIndex, Index, MAX_ROWS, SearchError, expansion_elements, query_values,
};
use proptest::prelude::*;
use zeroize::Zeroizing;

const LOG_N: u32 = 11;
const N: usize = 1 << LOG_N;
/// Odd, and above twice the largest score.
const T: u64 = (1 << 15) + 3;
const MAX_NORM2: u64 = 128 * 128;

fn parameters() -> BfvParameters {
    let mut literal = BfvLiteral::from_bits(LOG_N, &[50, 40], &[50], T).unwrap();
    literal.rlwe.security = keywright_rlwe::Security::InsecureForExperiments;
    BfvParameters::new(literal).unwrap()
}

fn rng(seed: u8) -> SecretRng {
    SecretRng::from_entropy(&Zeroizing::new([seed; 32]))
}

/// A client: its secret, and the keys that a server needs.
struct Owner {
    secret: SecretKey,
    keys: EvaluationKeys,
}

impl Owner {
    fn new(parameters: &BfvParameters, dimension: usize) -> Self {
        let rlwe = parameters.rlwe();
        let secret = SecretKey::sample(rlwe, &mut rng(1)).unwrap();
        let spec = |element| KeySpec::new(rlwe, KeyElement::Galois(element), 1, 1, true);
        let specs: Vec<_> = expansion_elements(LOG_N, dimension).into_iter().map(spec).collect();
        let keys = KeyGenerator::new(&secret, rng(2)).evaluation_keys(&specs).unwrap();
        Self { secret, keys }
    }

    fn answer(&self, index: &Index, query: &[i64]) -> Result<Answer, SearchError> {
        let parameters = index.parameters();
        let values = query_values(parameters, query)?;
        let plaintext = parameters.encode(&values, Packing::Coefficients).unwrap();
        let owner = Decryptor::new(parameters, &self.secret).unwrap();
        let sent = owner.encrypt(&plaintext, 1, &mut rng(3)).unwrap();
        index.answer(&Evaluator::new(parameters, &self.keys).unwrap(), &sent.expand())
    }

    fn scores(&self, index: &Index, query: &[i64]) -> Vec<i64> {
        self.answer(index, query).unwrap().decrypt(index.parameters(), &self.secret).unwrap()
    }
}

/// Inner products plus addends, centred modulo `t`.
fn oracle(rows: &[Vec<i16>], addends: &[i64], query: &[i64]) -> Vec<i64> {
    let t = T as i64;
    let centred = |x: i64| (x + t / 2).rem_euclid(t) - t / 2;
    let products = rows.iter().map(|row| row.iter().zip(query).map(|(&x, &q)| i64::from(x) * q).sum::<i64>());
    products.enumerate().map(|(k, p)| centred(p + addends.get(k).unwrap_or(&0))).collect()
}

fn index_of(parameters: &BfvParameters, rows: &[Vec<i16>], addends: &[i64]) -> Index {
    let mut index = Index::new(parameters, rows[0].len(), MAX_NORM2).unwrap();
    let places: Vec<usize> = (0..rows.len()).collect();
    index.write(&places, &rows.concat(), addends).unwrap();
    index
}

/// Rows and a query whose norms are at most 128.
fn case() -> impl Strategy<Value = (Vec<Vec<i16>>, Vec<i64>, Vec<i64>)> {
    (1usize..200, prop_oneof![1usize..20, N - 2..N + 20], any::<bool>()).prop_flat_map(
        |(dimension, rows, with_addends)| {
            let bound = (128.0 / (dimension as f64).sqrt()) as i16;
            let vector = prop::collection::vec(-bound..=bound, dimension);
            let addends = prop::collection::vec(-16000i64..16000, if with_addends { rows } else { 0 });
            let query = prop::collection::vec(i64::from(-bound)..=i64::from(bound), dimension);
            (prop::collection::vec(vector, rows), addends, query)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn scores_are_exact((rows, addends, query) in case()) {
        let parameters = parameters();
        let index = index_of(&parameters, &rows, &addends);
        let owner = Owner::new(&parameters, query.len());
        prop_assert_eq!(owner.scores(&index, &query), oracle(&rows, &addends, &query));
    }
}

/// Equal rows of the largest norm concentrate every polynomial at few roots of unity.
#[test]
fn equal_rows_of_the_largest_norm_decrypt() {
    let parameters = parameters();
    let mut row = vec![0i16; 64];
    row[..4].fill(64);
    let rows = vec![row.clone(); N];
    let query: Vec<i64> = row.iter().map(|&x| x.into()).collect();
    let owner = Owner::new(&parameters, 64);
    assert_eq!(owner.scores(&index_of(&parameters, &rows, &[]), &query), vec![128 * 128; N]);
}

#[test]
fn every_back_end_gives_the_same_bytes() {
    let rows: Vec<Vec<i16>> =
        (0..40).map(|k| (0..150).map(|i| ((k * 7 + i * 13) % 19 - 9) as i16).collect()).collect();
    let query: Vec<i64> = (0..150).map(|i| i % 11 - 5).collect();
    let answers: Vec<Answer> = backend::available()
        .into_iter()
        .map(|backend| {
            let parameters = BfvParameters::with_backend(parameters().literal(), backend).unwrap();
            Owner::new(&parameters, 150).answer(&index_of(&parameters, &rows, &[]), &query).unwrap()
        })
        .collect();
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn places_are_rewritten_and_read() {
    let parameters = parameters();
    let rows: Vec<Vec<i16>> = (0..5).map(|k| vec![k, 2 * k, -k]).collect();
    let mut index = index_of(&parameters, &rows, &[1, 2, 3, 4, 5]);
    index.write(&[1, 5], &[9, 8, 7, 6, 5, 4], &[]).unwrap();
    assert_eq!(index.rows(), 6);
    assert_eq!(index.read(&[5, 1, 4]).unwrap(), [6, 5, 4, 9, 8, 7, 4, 8, -4]);
    let owner = Owner::new(&parameters, 3);
    assert_eq!(owner.scores(&index, &[1, 0, 0]), [1, 9, 5, 7, 9, 6]);
}

/// The shape of an answer is that of the index, whatever the vectors and the query are.
#[test]
fn the_shape_of_an_answer_depends_on_no_vector() {
    let parameters = parameters();
    let owner = Owner::new(&parameters, 2);
    let shape = |row: [i16; 2], query: [i64; 2]| {
        let answer = owner.answer(&index_of(&parameters, &[row.to_vec()], &[]), &query).unwrap();
        (answer.shape, answer.body.len())
    };
    assert_eq!(shape([0, 0], [0, 0]), shape([127, -1], [1, 100]));
}

#[test]
fn bad_input_is_refused() {
    let parameters = parameters();
    let range = |result: Result<(), SearchError>| match result {
        Err(SearchError::Range { what, value, .. }) => (what, value),
        other => panic!("{other:?}"),
    };
    assert_eq!(range(Index::new(&parameters, 0, 1).map(drop)), ("dimension", 0));
    assert_eq!(range(Index::new(&parameters, N + 1, 1).map(drop)), ("dimension", N as u64 + 1));
    let mut even = parameters.literal();
    even.plaintext_modulus -= 1;
    let even = BfvParameters::new(even).unwrap();
    assert_eq!(range(Index::new(&even, 3, 1).map(drop)).1, T - 1);

    let mut index = Index::new(&parameters, 2, MAX_NORM2).unwrap();
    let owner = Owner::new(&parameters, 2);
    assert_eq!(owner.answer(&index, &[1, 2]), Err(SearchError::Empty));
    assert_eq!(range(index.write(&[1], &[1, 2], &[])), ("place", 1));
    assert_eq!(range(index.write(&[0], &[1, 2, 3], &[])), ("number of components", 3));
    assert_eq!(range(index.write(&[0], &[1, 2], &[1, 2])), ("number of addends", 2));
    assert_eq!(range(index.write(&[0], &[1, 2], &[-(T as i64)])).1, T);
    let refused = index.write(&[0, 1], &[1, 2, 128, 1], &[]);
    assert_eq!(refused, Err(SearchError::Norm { row: 1, value: 128 * 128 + 1, max: MAX_NORM2 }));
    assert_eq!(index.rows(), 0);
    assert_eq!(index.read(&[0]), Err(SearchError::Empty));

    index.write(&[0], &[1, 2], &[]).unwrap();
    let answer = owner.answer(&index, &[1, 2]).unwrap();
    let mut claimed = answer.clone();
    claimed.shape.rows = MAX_ROWS + 1;
    let claim = |answer: &Answer| range(answer.decrypt(&parameters, &owner.secret).map(drop)).0;
    assert_eq!(claim(&claimed), "number of scores");
    claimed.shape.rows = N + 1;
    assert_eq!(claim(&claimed), "length of the answer");
    claimed.shape = answer.shape;
    claimed.shape.width_1 = 60;
    assert_eq!(claim(&claimed), "width of the second half");
    claimed.shape.width_1 = 7;
    assert_eq!(claim(&claimed), "width of the second half");
    claimed.shape = AnswerShape { width_0: 7, ..answer.shape };
    assert_eq!(claim(&claimed), "width of the first half");
    let stranger = SecretKey::sample(parameters.rlwe(), &mut rng(9)).unwrap();
    assert!(matches!(answer.decrypt(&parameters, &stranger), Err(SearchError::Bfv(BfvError::Rlwe(_)))));
}

/// Levels of quantisation that leave no room for the noise are refused, by the estimate and before the products.
#[test]
fn an_answer_that_could_not_be_decrypted_is_refused() {
    let mut literal = BfvLiteral::from_bits(LOG_N, &[36, 30], &[36], (1 << 22) + 1).unwrap();
    literal.rlwe.security = keywright_rlwe::Security::InsecureForExperiments;
    let parameters = BfvParameters::new(literal).unwrap();
    let mut index = Index::new(&parameters, 2, 1 << 20).unwrap();
    index.write(&[0], &[1, 2], &[]).unwrap();
    let refused = Owner::new(&parameters, 2).answer(&index, &[1, 2]);
    assert!(matches!(refused, Err(SearchError::Noise { .. })), "{refused:?}");
}

#[test]
fn a_query_in_slots_is_refused() {
    let mut literal = parameters().literal();
    literal.plaintext_modulus = keywright_ring::ntt_primes(LOG_N, 16, 1, &[]).unwrap()[0];
    let parameters = BfvParameters::new(literal).unwrap();
    let index = index_of(&parameters, &[vec![1, 2]], &[]);
    let owner = Owner::new(&parameters, 2);
    let mut generator = KeyGenerator::new(&owner.secret, rng(4));
    let public = generator.public_key();
    let plaintext = parameters.encode(&[1, 2], Packing::Slots).unwrap();
    let query = Encryptor::new(&parameters, &public, rng(5)).unwrap().encrypt(&plaintext, 1).unwrap();
    let refused = index.answer(&Evaluator::new(&parameters, &owner.keys).unwrap(), &query);
    assert!(matches!(refused, Err(SearchError::Bfv(BfvError::PackingMismatch { .. }))));
}

/// The vectors of the index are encrypted, in two blocks, of which the first arrives in two parts.
#[test]
fn encrypted_vectors_have_the_same_scores() {
    let mut literal = BfvLiteral::from_bits(LOG_N, &[50, 50, 40], &[50], T).unwrap();
    literal.rlwe.security = keywright_rlwe::Security::InsecureForExperiments;
    let parameters = BfvParameters::new(literal).unwrap();
    let rlwe = parameters.rlwe();
    let secret = SecretKey::sample(rlwe, &mut rng(1)).unwrap();
    let elements = expansion_elements(LOG_N, 5).into_iter().map(|element| (KeyElement::Galois(element), 2));
    let elements = elements.chain([(KeyElement::Relinearization, 1)]);
    let specs: Vec<_> =
        elements.map(|(element, level)| KeySpec::new(rlwe, element, level, 1, true)).collect();
    let keys = KeyGenerator::new(&secret, rng(2)).evaluation_keys(&specs).unwrap();
    let owner = Decryptor::new(&parameters, &secret).unwrap();
    let mut random = rng(3);
    let mut encrypt = |values: &[i64], level: usize| {
        let plaintext = parameters.encode(values, Packing::Coefficients).unwrap();
        owner.encrypt(&plaintext, level, &mut random).unwrap().expand()
    };
    let rows: Vec<Vec<i16>> =
        (0..N + 3).map(|k| (0..5).map(|i| ((k * 31 + i * 17) % 101) as i16 - 50).collect()).collect();
    let addends: Vec<i64> = (0..N as i64 + 3).map(|k| k % 7 - 3).collect();
    let query = [50, -50, 1, 0, 49];
    let evaluator = Evaluator::new(&parameters, &keys).unwrap();
    let sent = encrypt(&query_values(&parameters, &query).unwrap(), 2);
    for with_addends in [false, true] {
        let addends = if with_addends { &addends[..] } else { &[] };
        let mut index = EncryptedIndex::new(&parameters, 5, 1).unwrap();
        assert_eq!(index.answer(&evaluator, &sent), Err(SearchError::Empty));
        for part in [0..10, 10..N, N..N + 3] {
            let place = |values: Vec<i64>| [vec![0; part.start % N], values].concat();
            let component = |i: usize| rows[part.clone()].iter().map(|row| row[i].into()).collect();
            let mut components: Vec<_> = (0..5).map(|i| encrypt(&place(component(i)), 1)).collect();
            if with_addends {
                components.push(encrypt(&place(addends[part.clone()].to_vec()), 1));
            }
            index.append(part.len(), components).unwrap();
        }
        assert_eq!(index.read(1).unwrap().len(), 5 + usize::from(with_addends));
        assert_eq!(index.rows(), N + 3);
        let answer = index.answer(&evaluator, &sent).unwrap();
        assert_eq!(answer.decrypt(&parameters, &secret).unwrap(), oracle(&rows, addends, &query));
    }

    let refused = |result: Result<(), SearchError>| match result {
        Err(SearchError::Range { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    let zeros: Vec<_> = (0..6).map(|_| encrypt(&[0], 1)).collect();
    let mut index = EncryptedIndex::new(&parameters, 5, 1).unwrap();
    assert_eq!(refused(index.append(1, zeros[2..].to_vec())), "number of ciphertexts of a block");
    assert_eq!(refused(index.append(N + 1, zeros.clone())), "number of vectors of a block");
    let mut higher = zeros.clone();
    higher[2] = encrypt(&[0], 2);
    assert_eq!(refused(index.append(1, higher)), "level of a ciphertext");
    index.append(N - 1, zeros[1..].to_vec()).unwrap();
    assert_eq!(refused(index.append(2, zeros[1..].to_vec())), "number of vectors of a block");
    assert_eq!(refused(index.append(1, zeros)), "number of ciphertexts of a block");
    assert_eq!(refused(index.read(1).map(drop)), "block");
    assert_eq!(index.rows(), N - 1);
}
