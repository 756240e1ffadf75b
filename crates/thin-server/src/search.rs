//! Queries of thin clients on an index in the clear ([`keywright_search::Index`]), whose parameters have one prime.
//!
//! A thin client puts the integer `q_i` into coefficient `i`, times `Q / (t D)`. The expansion multiplies by `D`, so
//! that it yields encryptions of `round(Q q_i / t)`, those of [`keywright_search::query_values`], and the client needs
//! no arithmetic modulo `t`. The scale is that of `2^f` units, and numbers have fewer: a coefficient is wrong by no
//! more than the scale, which is rounded to an integer of 53 bits.
//!
//! An answer is a ciphertext for each block, without the low bits that decryption does not need. A reader takes the
//! middle of the interval of the other bits, so that its error is that of the rounding in a
//! [`keywright_search::Answer`] of the same widths: the answers of both clients have equally many bits.

use keywright_bfv::{BfvParameters, Ciphertext, Evaluator, NoiseEstimate, Packing};
use keywright_client::{ClientParameters, Layout, RingEngine, write_compact};
use keywright_frame::packing::MIN_WIDTH;
use keywright_rlwe::for_each_item;
use keywright_search::{Halves, Index};

use crate::ServerError;
use crate::parameters::one_prime;
use crate::received_ciphertext::{read_compact, require_client};

/// The parameters for thin clients of an index: numbers are the integers of a query, of at most `largest`, and the
/// scores modulo `t`, in coefficients.
///
/// # Errors
/// [`ServerError::Client`] for integers that are not far below `t`.
pub fn search_parameters(index: &Index, largest: u32) -> Result<ClientParameters, ServerError> {
    let (parameters, fraction_bits) = (index.parameters(), u32::BITS - largest.leading_zeros());
    let scale = score_scale(parameters, fraction_bits) / index.dimension().next_power_of_two() as f64;
    one_prime(parameters.rlwe(), scale.round() as u64, fraction_bits, largest.into(), Layout::Coefficients)
}

/// Reads a query from a client of these parameters, in compact form. Checks scale, layout and every residue.
///
/// # Errors
/// [`ServerError::Client`]: damaged or foreign bytes, or another form; [`ServerError::Rlwe`]: a client of other
/// parameters; [`ServerError::Upload`].
pub fn read_query(
    bytes: &[u8],
    parameters: &BfvParameters,
    client: &ClientParameters,
) -> Result<Ciphertext, ServerError> {
    require_client(parameters.rlwe(), client)?;
    let (rlwe, scale, variance) = read_compact(bytes, parameters.rlwe(), client)?;
    let expected = client.literal().scale as f64;
    if scale != expected {
        let (found, expected) = (scale.to_string(), expected.to_string());
        return Err(ServerError::Upload { what: "scale", found, expected });
    }
    // The largest error of the scale: half of an integer, or of its last bit.
    let rounding = (expected * (-54f64).exp2()).max(0.5);
    let estimate = NoiseEstimate::fresh(parameters, 0, variance + rounding * rounding);
    Ok(Ciphertext { parameters: parameters.clone(), rlwe, packing: Packing::Coefficients, estimate })
}

/// The scores of every place of an index for a query of [`read_query`]: an answer for each block of `N` places, one
/// after another and of one length.
///
/// # Errors
/// [`ServerError::Search`]: as [`Index::answer`]; [`ServerError::Rlwe`]: a client of other parameters.
pub fn write_scores(
    index: &Index,
    evaluator: &Evaluator<'_>,
    query: &Ciphertext,
    client: &ClientParameters,
) -> Result<Vec<u8>, ServerError> {
    let parameters = index.parameters();
    require_client(parameters.rlwe(), client)?;
    let (shape, sums) = index.sums(evaluator, query)?;
    let (ring, key, identity) = (parameters.rlwe().ring(), query.key(), client.literal().identity);
    let width = ring.modulus(0).bits();
    let dropped = [shape.width_0, shape.width_1].map(|kept| width - kept.max(MIN_WIDTH));
    let fraction_bits = client.fixed_point().fraction_bits();
    let unit = f64::from(fraction_bits).exp2().recip();
    // Half a score bounds the error of each, and half of `t` its size.
    let sizes = [1.0, parameters.plaintext_modulus() as f64].map(|size| size / 2.0 * unit);
    let message = [score_scale(parameters, fraction_bits), sizes[0], sizes[1]].map(f64::to_bits);
    let mut objects: Vec<_> = sums.iter().map(|_| Ok(Vec::new())).collect();
    for_each_item(
        sums.into_iter().zip(&mut objects).collect(),
        |_, (mut halves, object): (Halves, &mut _)| {
            halves.iter_mut().for_each(|half| ring.inverse_limb(0, half.limb_mut(0)));
            let (engine, limbs, mut out) =
                (RingEngine::of(ring), [halves[0].limb(0), halves[1].limb(0)], Vec::new());
            let layout = Layout::Coefficients;
            *object = write_compact(&engine, &identity, key, layout, dropped, message, limbs, &mut out)
                .map(|()| out);
        },
    );
    Ok(objects.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
}

/// The coefficient of a score of `2^fraction_bits`.
fn score_scale(parameters: &BfvParameters, fraction_bits: u32) -> f64 {
    let (q, t) = (parameters.rlwe().modulus(0).value(), parameters.plaintext_modulus());
    q as f64 / t as f64 * f64::from(fraction_bits).exp2()
}
