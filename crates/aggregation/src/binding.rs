use keywright_ring::{Modulus, Seed, StreamId};
use keywright_rlwe::Parameters;
use sha2::{Digest, Sha256};

/// Stream object of the first polynomial of an update; polynomial `c` has this plus `c`.
const UPDATE_STREAM: u64 = 7 << 40;
/// Domain separator of the seeds that are expanded.
const DOMAIN: &[u8] = b"keywright encrypted update";

/// Distinguishes one run of aggregation from another: a digest of everything that its clients must agree on. Fields of
/// this type are called `session`.
pub type RunId = [u8; 16];

/// The claims of an update. They are bound into the ciphertext: with other claims it does not decrypt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    /// The run.
    pub session: RunId,
    /// The round.
    pub round: u32,
    /// The client that made it.
    pub client: u64,
    /// Weight by which the client multiplied its values, in units of its own: public.
    pub weight: u32,
}

impl Binding {
    /// The seed for expansion: SHA-256 of the domain, the claims, the number of values and the drawn seed.
    pub(crate) fn bind(&self, count: u32, seed: &Seed) -> Seed {
        let digest = Sha256::new()
            .chain_update(DOMAIN)
            .chain_update(self.session)
            .chain_update(self.round.to_le_bytes())
            .chain_update(self.client.to_le_bytes())
            .chain_update(self.weight.to_le_bytes())
            .chain_update(count.to_le_bytes())
            .chain_update(seed.0)
            .finalize();
        Seed(digest.into())
    }
}

/// Uniform half of polynomial `chunk`, in evaluation form, from a bound seed.
pub(crate) fn uniform_half(parameters: &Parameters, bound: &Seed, chunk: usize, out: &mut [u64]) {
    let id = StreamId { object: UPDATE_STREAM + chunk as u64, digit: 0, limb: 0 };
    let modulus: &Modulus = parameters.modulus(0);
    parameters.ring().backend().expand_uniform(bound, id, modulus, out);
}
