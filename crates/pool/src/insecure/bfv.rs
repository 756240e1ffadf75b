use keywright_bfv::{BfvError, BfvParameters, Ciphertext, NoiseEstimate, Packing};
use keywright_ring::{Evaluation, Poly};
use keywright_rlwe::RlweCiphertext;

use super::ChemScheme;
use crate::PoolError;

/// BFV messages in every slot, modulo the plaintext modulus.
pub struct ChemBfv {
    parameters: BfvParameters,
    level: usize,
}

impl ChemBfv {
    /// The scheme at a level.
    pub fn new(parameters: &BfvParameters, level: usize) -> Self {
        Self { parameters: parameters.clone(), level }
    }
}

impl ChemScheme for ChemBfv {
    type Ciphertext = Result<Ciphertext, BfvError>;

    fn add_power(&self, radix: u64, exponent: u32, c0: &mut Poly<Evaluation>) -> Result<(), PoolError> {
        let t = u128::from(self.parameters.plaintext_modulus());
        let power = (0..exponent).fold(1, |power, _| power * u128::from(radix) % t);
        self.parameters.encode_scalar((power % t) as i64, Packing::Slots)?.add_scaled_to(c0);
        Ok(())
    }

    fn ciphertext(&self, rlwe: RlweCiphertext, variance: f64) -> Result<Ciphertext, BfvError> {
        let parameters = self.parameters.clone();
        let estimate = NoiseEstimate::fresh(&parameters, self.level, variance).checked("encrypt")?;
        Ok(Ciphertext { parameters, rlwe, packing: Packing::Slots, estimate })
    }
}
