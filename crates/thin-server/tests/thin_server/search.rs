//! Scores of an index that a thin client asks, against inner products computed one by one.

use keywright_bfv::{BfvLiteral, BfvParameters, Evaluator};
use keywright_client::{Client, ClientError, Form};
use keywright_rlwe::{EvaluationKeys, KeyElement, KeySpec, Security, SwitchingKey};
use keywright_search::{Index, expansion_elements};
use keywright_thin_server::{ServerError, read_query, search_parameters, write_scores};
use keywright_wire::Wire;

use crate::fixture::entropy;

const LOG_N: u32 = 11;
const N: usize = 1 << LOG_N;
const DIMENSION: usize = 5;

fn index() -> (Index, Vec<Vec<i16>>) {
    let mut literal = BfvLiteral::from_bits(LOG_N, &[60], &[61], 32 * 32 * 10 + 1).unwrap();
    literal.rlwe.security = Security::InsecureForExperiments;
    let parameters = BfvParameters::new(literal).unwrap();
    let rows: Vec<Vec<i16>> =
        (0..N + 3).map(|k| (0..DIMENSION).map(|i| ((k * 31 + i * 17) % 65) as i16 - 32).collect()).collect();
    let mut index = Index::new(&parameters, DIMENSION, 32 * 32 * 5).unwrap();
    index.write(&(0..rows.len()).collect::<Vec<_>>(), &rows.concat(), &[]).unwrap();
    (index, rows)
}

#[test]
fn scores_are_inner_products() {
    let (index, rows) = index();
    let parameters = index.parameters();
    let thin = search_parameters(&index, 32).unwrap();
    let mut client = Client::generate(&thin, &mut entropy(1)).unwrap();
    let specs: Vec<KeySpec> = expansion_elements(LOG_N, DIMENSION)
        .into_iter()
        .map(|element| KeySpec::new(parameters.rlwe(), KeyElement::Galois(element), 0, 1, true))
        .collect();
    let session = client.session().unwrap();
    let mut stream = client.keys(parameters.rlwe(), &specs, &session).unwrap();
    let mut keys = EvaluationKeys::new(parameters.rlwe());
    let mut bytes = Vec::new();
    while stream.write_next(&mut bytes, &mut |_| ()).unwrap() {
        keys.insert(SwitchingKey::from_bytes(&bytes, parameters.rlwe()).unwrap()).unwrap();
        bytes.clear();
    }
    let query = [32i64, -32, 1, 0, -7];
    let mut sent = Vec::new();
    client.encrypt(&query[..], Form::Compact([2, 0]), &mut sent).unwrap();
    let received = read_query(&sent, parameters, &thin).unwrap();
    let evaluator = Evaluator::new(parameters, &keys).unwrap();
    let answer = write_scores(&index, &evaluator, &received, &thin).unwrap();

    let mut scores = Vec::new();
    for (block, count) in answer.chunks(answer.len() / 2).zip([N, 3]) {
        let mut numbers = vec![0; count];
        client.decrypt(block, &mut numbers).unwrap();
        scores.extend(numbers);
    }
    let product = |row: &Vec<i16>| row.iter().zip(query).map(|(&x, q)| i64::from(x) * q).sum::<i64>();
    assert_eq!(scores, rows.iter().map(product).collect::<Vec<_>>());

    let mut whole = Vec::new();
    client.encrypt(&query[..], Form::Evaluations, &mut whole).unwrap();
    let refused = read_query(&whole, parameters, &thin).map(drop);
    assert!(matches!(refused, Err(ServerError::Client(ClientError::Format { .. }))), "{refused:?}");
    let other = search_parameters(&index, 64).unwrap();
    let refused = read_query(&sent, parameters, &other).map(drop);
    assert!(matches!(refused, Err(ServerError::Upload { what: "scale", .. })), "{refused:?}");
    assert!(client.encrypt(&[33i64][..], Form::Compact([0, 0]), &mut Vec::new()).is_err());
}
