//! Thin clients: what they read, and what a server reads of them.

use std::sync::OnceLock;

use keywright_client::{
    Answer, Client, ClientError, ClientParameters, Encryptor, Form, Layout, PublicKey, SmallEngine,
    expand_secret, read_secret, reduction::Montgomery, write_secret,
};
use keywright_thin_server as server;

use crate::targets::{Target, context, is_old};

/// All targets.
pub const TARGETS: [(&str, Target); 5] = [
    ("client_parameters", parameters),
    ("client_answer", answer),
    ("client_upload", upload),
    ("client_public_key", public_key),
    ("client_secret", secret),
];

fn client_parameters() -> &'static ClientParameters {
    static CONTEXT: OnceLock<ClientParameters> = OnceLock::new();
    CONTEXT.get_or_init(|| {
        let layout = Layout::Slots { log_slots: 5, complex: true };
        server::parameters_at(context(), 1 << 40, 20, layout).expect("the parameters are a client's")
    })
}

/// The randomness of the files that are started from.
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
    let mut seeds = vec![Vec::new(), Vec::new(), client.secret_bytes().expect("it is written").to_vec()];
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
    assert!(is_old(bytes) || written == bytes, "another encoding loads");
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

fn secret(bytes: &[u8]) -> bool {
    let Ok(packed) = read_secret(client_parameters(), bytes) else { return false };
    let mut written = Vec::new();
    write_secret(client_parameters(), packed, &mut written).expect("what loads can be written");
    // Secrets of smaller rings may follow: they are another reader's.
    let followed = written.len() < bytes.len();
    assert!(is_old(bytes) || followed || written == bytes, "another encoding loads");
    true
}
