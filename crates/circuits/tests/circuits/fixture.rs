//! Parameters, keys and random values for the tests of this crate.

use keywright_ckks::{
    Ciphertext, CkksLiteral, CkksParameters, Complex64, Decryptor, Encryptor, ErrorEstimate, Magnitude,
    Packing,
};
use keywright_ring::rotation_element;
pub(crate) use keywright_ring_testing::rng;
use keywright_rlwe::{EvaluationKeys, KeyElement, KeyGenerator, KeySpec, PublicKey, SecretKey};

/// Splitmix64: values for tests.
pub(crate) struct Values(pub u64);

impl Values {
    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in `[-1, 1)`.
    pub(crate) fn real(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    pub(crate) fn reals(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| self.real()).collect()
    }

    /// In the square of side 1.4 around 0, so of absolute value at most 1.
    pub(crate) fn complex(&mut self, count: usize) -> Vec<Complex64> {
        (0..count).map(|_| Complex64::new(0.7 * self.real(), 0.7 * self.real())).collect()
    }
}

/// The owner of one secret.
pub(crate) struct Owner {
    pub(crate) parameters: CkksParameters,
    pub(crate) secret: SecretKey,
    pub(crate) public: PublicKey,
}

/// The declaration of a message that is known: its largest absolute value.
pub(crate) fn largest(values: impl IntoIterator<Item = f64>) -> Magnitude {
    Magnitude::new(values.into_iter().map(f64::abs).fold(f64::MIN_POSITIVE, f64::max)).unwrap()
}

impl Owner {
    pub(crate) fn new(parameters: CkksParameters) -> Self {
        let secret = SecretKey::sample(parameters.rlwe(), &mut rng(1)).unwrap();
        let public = KeyGenerator::new(&secret, rng(2)).public_key();
        Self { parameters, secret, public }
    }

    /// A small insecure ring, for speed.
    pub(crate) fn small(q_bits: &[u32], p_bits: &[u32], log_scale: f64) -> Self {
        Self::insecure(11, q_bits, p_bits, log_scale)
    }

    /// An insecure ring of any degree.
    pub(crate) fn insecure(log_n: u32, q_bits: &[u32], p_bits: &[u32], log_scale: f64) -> Self {
        let literal = CkksLiteral::from_bits(log_n, q_bits, p_bits, log_scale).unwrap().insecure();
        Self::new(CkksParameters::new(literal).unwrap())
    }

    pub(crate) fn spec(&self, element: KeyElement, level: usize, alpha: usize) -> KeySpec {
        KeySpec::new(self.parameters.rlwe(), element, level, alpha, true)
    }

    pub(crate) fn rotation(&self, steps: usize) -> KeyElement {
        KeyElement::Galois(rotation_element(self.parameters.rlwe().log_n(), steps as i64))
    }

    pub(crate) fn keys(&self, specs: impl IntoIterator<Item = KeySpec>) -> EvaluationKeys {
        let specs: Vec<_> = specs.into_iter().collect();
        KeyGenerator::new(&self.secret, rng(3)).evaluation_keys(&specs).unwrap()
    }

    pub(crate) fn encrypt(&self, values: &[Complex64], level: usize) -> Ciphertext {
        let encryptor = Encryptor::new(&self.parameters, &self.public, rng(4)).unwrap();
        let mut encryptor = encryptor.declaring(largest(values.iter().map(|v| v.norm())));
        encryptor.encrypt(values, values.len().trailing_zeros(), level).unwrap()
    }

    /// Values at another scale than that of the parameters.
    pub(crate) fn encrypt_at(&self, values: &[Complex64], level: usize, scale: f64) -> Ciphertext {
        let mut literal = self.parameters.literal();
        literal.log_scale = scale.log2();
        let client = CkksParameters::new(literal).unwrap();
        let encryptor = Encryptor::new(&client, &self.public, rng(4)).unwrap();
        let mut encryptor = encryptor.declaring(largest(values.iter().map(|v| v.norm())));
        let input = encryptor.encrypt(values, values.len().trailing_zeros(), level).unwrap();
        Ciphertext { parameters: self.parameters.clone(), ..input }
    }

    pub(crate) fn encrypt_real(&self, values: &[f64], level: usize) -> Ciphertext {
        let encryptor = Encryptor::new(&self.parameters, &self.public, rng(4)).unwrap();
        let mut encryptor = encryptor.declaring(largest(values.iter().copied()));
        let packing = Packing::Slots { log_slots: values.len().trailing_zeros() };
        encryptor.encrypt_real(values, packing, level).unwrap()
    }

    pub(crate) fn decrypt(&self, ciphertext: &Ciphertext) -> Vec<Complex64> {
        Decryptor::new(&self.parameters, &self.secret).unwrap().decrypt(&fitting(ciphertext)).unwrap()
    }

    pub(crate) fn decrypt_real(&self, ciphertext: &Ciphertext) -> Vec<f64> {
        Decryptor::new(&self.parameters, &self.secret).unwrap().decrypt_real(&fitting(ciphertext)).unwrap()
    }

    /// Largest distance of decrypted values from the expected ones. Must be within the estimate's bound plus `float`,
    /// the error of the reference computation in `f64`.
    pub(crate) fn check(
        &self,
        ciphertext: &Ciphertext,
        expected: &[Complex64],
        float: f64,
        what: &str,
    ) -> f64 {
        let decrypted = self.decrypt(ciphertext);
        assert_eq!(decrypted.len(), expected.len());
        let seen = decrypted.iter().zip(expected).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
        let ErrorEstimate { magnitude, .. } = ciphertext.estimate;
        let bound = ciphertext.estimate.bound();
        assert!(seen <= bound + float, "{what}: error {seen:e} above {bound:e} + {float:e}");
        let largest = expected.iter().map(|v| v.norm()).fold(0.0, f64::max);
        assert!(largest <= magnitude * (1.0 + 1e-9), "{what}: values up to {largest}, estimated {magnitude}");
        seen
    }
}

/// The ciphertext with values that fit its modulus, as those of the tests do: bounds for the worst values may not.
fn fitting(ciphertext: &Ciphertext) -> Ciphertext {
    let log_room = ciphertext.parameters.rlwe().log2_q(ciphertext.level()) - 1.5;
    let room = log_room.exp2() / ciphertext.scale;
    if ciphertext.estimate.magnitude < room {
        return ciphertext.clone();
    }
    ciphertext.clone().declared(Magnitude::new(room).unwrap())
}
