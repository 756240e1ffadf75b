//! A thin client's encryption with the public key, as a record in the format of the full libraries.

use std::time::Instant;

use keywright_bench::{
    Record,
    measuring::{peak_rss, rng},
};
use keywright_client::reduction::{ShiftAdd30, ShiftAdd60};
use keywright_client::{Client, ClientLiteral, ClientParameters, Encryptor, Form, Layout};
use keywright_ring::backend;
use keywright_rlwe::{Parameters, ParametersLiteral, SecretDistribution, Security, noise, threads};

use crate::StudyError;

/// A client with its secret, and one that encrypts with its public key.
pub(crate) fn client_pair(thin: &ClientParameters) -> Result<(Client, Encryptor), StudyError> {
    let mut entropy = rng(7);
    let mut entropy = |out: &mut [u8]| {
        entropy.fill_bytes(out);
        Ok(())
    };
    let mut owner = Client::generate(thin, &mut entropy)?;
    let mut key = Vec::new();
    owner.public_key(&mut key)?;
    let sender = Encryptor::new(thin, &key, &mut entropy)?;
    Ok((owner, sender))
}

/// Encrypts `N` numbers modulo `2^30 - 2^18 + 1` or `2^60 - 2^18 + 1`, from integers to bytes, and decrypts the last
/// ciphertext.
///
/// # Errors
/// [`StudyError::Runs`] for no runs; [`StudyError::Wrong`] if a number's error exceeds its bound, or for other numbers
/// of bits.
pub fn run_thin_encrypt(log_n: u32, bits: u32, runs: usize) -> Result<Record, StudyError> {
    let (modulus, log_scale) = match bits {
        30 => (ShiftAdd30::MODULUS, 27),
        60 => (ShiftAdd60::MODULUS, 57),
        other => return Err(StudyError::Wrong(format!("q_0 has 30 or 60 bits, not {other}"))),
    };
    if runs == 0 {
        return Err(StudyError::Runs);
    }
    let insecure = log_n < 12;
    let mut identity = [0; 20];
    (identity[0], identity[3]) = (log_n as u8, u8::from(insecure));
    let secret = SecretDistribution::Ternary;
    let thin = ClientParameters::new(ClientLiteral {
        log_n,
        modulus,
        secret,
        scale: 1 << log_scale,
        fraction_bits: log_scale,
        max: 1 << log_scale,
        layout: Layout::Slots { log_slots: log_n - 1, complex: true },
        identity,
        entry_identity: identity,
        estimate: [0; 3],
    })?;
    let (mut owner, mut sender) = client_pair(&thin)?;
    let (most, mut source) = (thin.fixed_point().max(), rng(3));
    let numbers: Vec<i64> =
        (0..thin.n()).map(|_| (source.next_word() % (2 * most as u64 + 1)) as i64 - most).collect();
    let mut bytes = Vec::with_capacity(thin.ciphertext_bytes());
    let mut times = Vec::with_capacity(runs);
    for run in 0..=runs {
        bytes.clear();
        let start = Instant::now();
        sender.encrypt(&numbers[..], Form::Evaluations, &mut bytes)?;
        // The first run touches memory.
        if run > 0 {
            times.push(start.elapsed().as_secs_f64());
        }
    }
    times.sort_by(f64::total_cmp);
    let security = if insecure { Security::InsecureForExperiments } else { Security::Classical128 };
    let ring = Parameters::new(ParametersLiteral {
        log_n,
        q: vec![modulus],
        p: Vec::new(),
        secret,
        security,
        subrings: Vec::new(),
    })?;
    let mut found = vec![0; numbers.len()];
    owner.decrypt(&bytes, &mut found)?;
    // Numbers are in units of a coefficient.
    let bound = noise::TAIL * noise::fresh_public(&ring).sqrt() + 1.0;
    if let Some(index) = (0..found.len()).find(|&i| (found[i] - numbers[i]).abs() as f64 > bound) {
        return Err(StudyError::Wrong(format!("number {index} is off by more than {bound:.1} units")));
    }
    Ok(Record {
        work: "encrypt",
        log_n,
        level: 0,
        alpha: None,
        seeded: false,
        threads: threads(),
        backend: backend::default()?.kind().name(),
        times,
        limit_s: None,
        bytes: bytes.len(),
        checked: true,
        peak_rss_bytes: peak_rss(),
        bootstrap: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_timed_is_decrypted() {
        for (bits, bytes) in [(30, 2 * 2048 * 30 / 8), (60, 2 * 2048 * 60 / 8)] {
            let record = run_thin_encrypt(11, bits, 2).unwrap();
            assert!(record.checked && record.times.len() == 2 && record.bytes - bytes < 128);
        }
        assert!(matches!(run_thin_encrypt(11, 45, 1), Err(StudyError::Wrong(_))));
        assert!(matches!(run_thin_encrypt(11, 30, 0), Err(StudyError::Runs)));
    }
}
