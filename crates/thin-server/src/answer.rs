//! Answers of the server.

use std::io;

use keywright_ckks::{Ciphertext, ErrorEstimate, Packing};
use keywright_client::{Dropped, Engine, Layout, RingEngine, SinkError, write_compact};

use crate::ServerError;
use crate::dropped::dropped_variance;
use crate::parameters::identity;

/// Writes an answer modulo `q_0`, from a ciphertext at any level whose values are in coefficients: the coefficients of
/// `layout`, without low bits. Returns the error estimate of the client's decryption.
///
/// # Errors
/// [`ServerError::Packing`]; [`ServerError::TooLarge`] if values and error do not fit `q_0`;
/// [`ServerError::Client`] for too many dropped bits.
pub fn write_answer(
    ciphertext: &Ciphertext,
    layout: Layout,
    dropped: Dropped,
    writer: &mut impl io::Write,
) -> Result<ErrorEstimate, ServerError> {
    let rlwe = ciphertext.parameters.rlwe();
    if ciphertext.packing != Packing::Coefficients {
        return Err(ServerError::Packing(ciphertext.packing));
    }
    let added = ciphertext.deviation_of(dropped_variance(rlwe, dropped));
    let estimate = ciphertext.estimate.with_noise(added);
    let log_size = ((estimate.magnitude + estimate.bound()) * ciphertext.scale).log2();
    let log_q = rlwe.log2_q(0);
    if log_size.is_nan() || log_size > log_q - 1.0 {
        return Err(ServerError::TooLarge { log_size, log_q });
    }
    let engine = RingEngine::of(rlwe.ring());
    // Dropping to level 0 discards the other primes.
    let halves: Vec<Vec<u64>> = ciphertext
        .rlwe
        .polys
        .iter()
        .map(|poly| {
            let mut limb = poly.limb(0).to_vec();
            engine.inverse(&mut limb);
            limb
        })
        .collect();
    let [c0, c1] = &halves[..] else {
        let (found, expected) = (ciphertext.degree().to_string(), "1".into());
        return Err(ServerError::Upload { what: "degree", found, expected });
    };
    let message = [ciphertext.scale, estimate.deviation, estimate.magnitude].map(f64::to_bits);
    let identity = identity(rlwe.literal())?;
    let mut sink =
        |bytes: &[u8]| writer.write_all(bytes).map_err(|_| SinkError("the writer of the answer failed"));
    let key = ciphertext.key();
    write_compact(&engine, &identity, key, layout, dropped, message, [c0, c1], &mut sink)?;
    Ok(estimate)
}
