//! Thin clients: their readers, and a server's readers of their objects.

use std::sync::OnceLock;

use keywright_ckks::{CkksLiteral, CkksParameters};
use keywright_client::{
    Answer, Client, ClientError, ClientParameters, Encryptor, Form, Layout, PublicKey, SmallEngine,
    expand_secret, read_secret, reduction::Montgomery, write_secret,
};
use keywright_ring::sampling::SecretRng;
use keywright_rlwe::{ParametersLiteral, SecretKey, Security};
use keywright_thin_server as server;
use keywright_wire::WireSecret;

use crate::Target;
use crate::targets::context;

/// Readers of clients, and of a server for them.
pub(crate) const TARGETS: [(&str, Target); 5] = [
    ("client_parameters", parameters),
    ("client_answer", answer),
    ("client_upload", upload),
    ("client_public_key", public_key),
    ("client_secret", secret),
];

/// Makes the data that the targets share.
pub(crate) fn prepare() {
    client_parameters();
    rings();
}

fn client_parameters() -> &'static ClientParameters {
    static CONTEXT: OnceLock<ClientParameters> = OnceLock::new();
    CONTEXT.get_or_init(|| {
        let layout = Layout::Slots { log_slots: 5, complex: true };
        server::parameters_at(context(), 1 << 40, 20, layout).expect("the parameters are a client's")
    })
}

/// The randomness of the initial files.
fn entropy(first: u8) -> impl FnMut(&mut [u8]) -> Result<(), ClientError> {
    move |out| {
        (first..).zip(out).for_each(|(byte, place)| *place = byte);
        Ok(())
    }
}

/// Parameters, keys, and ciphertexts in every form.
pub fn seeds() -> Vec<Vec<u8>> {
    let thin = client_parameters();
    let numbers: Vec<i64> = (0..thin.capacity() as i64).map(|i| 1000 * i).collect();
    let mut client = Client::generate(thin, &mut entropy(1)).expect("the parameters are a client's");
    let (full, ring) = rings();
    let alone = Client::generate(ring, &mut entropy(3)).expect("the parameters are a client's");
    let rng = &mut SecretRng::from_entropy(&[4; 32].into());
    let both = SecretKey::sample(full.rlwe(), rng).expect("the parameters have a secret");
    let mut seeds = vec![
        Vec::new(),
        Vec::new(),
        alone.secret_bytes().expect("it is written").to_vec(),
        both.to_secret_bytes(full.rlwe()).expect("it is written").to_vec(),
    ];
    thin.write_to(&mut seeds[0]).expect("it is written");
    client.public_key(&mut seeds[1]).expect("it is written");
    let mut sender = Encryptor::new(thin, &seeds[1], &mut entropy(2)).expect("the key is a key");
    for form in [Form::Evaluations, Form::Compact([0, 0]), Form::Compact([5, 0])] {
        let [mut public, mut secret] = [Vec::new(), Vec::new()];
        sender.encrypt(&numbers[..], form, &mut public).expect("the numbers are legal");
        client.encrypt(&numbers[..], form, &mut secret).expect("the numbers are legal");
        seeds.extend([public, secret]);
    }
    seeds
}

fn parameters(bytes: &[u8]) -> bool {
    let Ok(read) = ClientParameters::from_bytes(bytes) else { return false };
    let mut written = Vec::new();
    read.write_to(&mut written).expect("what loads can be written");
    assert!(written == bytes, "another encoding loads");
    true
}

fn answer(bytes: &[u8]) -> bool {
    let thin = client_parameters();
    let Ok(answer) = Answer::read(thin, bytes) else { return false };
    let engine = SmallEngine::<Montgomery<u64>>::new(thin.log_n(), thin.modulus().value()).expect("a ring");
    let [mut secret, mut limb, mut other] = [const { Vec::new() }; 3].map(|mut words: Vec<u64>| {
        words.resize(thin.n(), 0);
        words
    });
    expand_secret(&engine, &vec![0b01_11_00_01; thin.n() / 4], &mut secret).expect("the lengths agree");
    let mut numbers = vec![0; thin.capacity()];
    answer.numbers(&engine, thin, &secret, &mut limb, &mut other, &mut numbers).is_ok()
}

fn upload(bytes: &[u8]) -> bool {
    let read = server::read_upload(bytes, context(), client_parameters());
    assert!(read.is_err() || !server::is_secret(bytes), "a server took a secret");
    read.is_ok()
}

fn public_key(bytes: &[u8]) -> bool {
    PublicKey::<u64>::read(client_parameters(), bytes).is_ok()
}

/// Parameters with a smaller ring, whose secret follows in a client's file. A client has the file, and uses only the
/// first secret.
fn rings() -> &'static (CkksParameters, ClientParameters) {
    static CONTEXT: OnceLock<(CkksParameters, ClientParameters)> = OnceLock::new();
    CONTEXT.get_or_init(|| {
        let bits = ParametersLiteral::from_bits(11, &[50, 40], &[61]).expect("the primes exist");
        let rlwe = ParametersLiteral { security: Security::InsecureForExperiments, ..bits };
        let literal = CkksLiteral { rlwe: rlwe.with_subrings(&[(10, 0, None)]), log_scale: 37.5 };
        let parameters = CkksParameters::new(literal).expect("the parameters are some");
        let layout = Layout::Slots { log_slots: 5, complex: true };
        let thin = server::parameters_at(&parameters, 1 << 40, 20, layout).expect("they are a client's");
        (parameters, thin)
    })
}

/// A client's secret file, read by a client and by the full library. A client does not know the smaller rings: it
/// accepts the file for any.
fn secret(bytes: &[u8]) -> bool {
    let (full, thin) = rings();
    let whole = SecretKey::from_secret_bytes(bytes, full.rlwe()).ok();
    let Ok(packed) = read_secret(thin, bytes) else {
        assert!(whole.is_none(), "the full library takes what a client refuses");
        return false;
    };
    let smaller = bytes.len() - {
        let mut written = Vec::new();
        write_secret(thin, packed, &mut written).expect("what loads can be written");
        assert!(written.len() < bytes.len() || written == bytes, "another encoding loads");
        written.len()
    };
    assert_eq!(whole.is_some(), smaller == packed.len() / 2, "the full library refuses what a client takes");
    true
}
