//! The data of a server's parameters that a client needs: a hundred bytes, in integers.

use keywright_frame::packing::packed_len;
use keywright_frame::{
    CiphertextDescriptor, Fields, IDENTITY_BYTES, Identity, IdentityBytes, Kind, MessageFields,
    SeededDescriptor,
};
use keywright_ring::Modulus;
use keywright_rlwe::{KeyIdentity, SecretDistribution, Security, maximum_log_qp};

use crate::error::{frame_error, in_range};
use crate::numbers::double_bits;
use crate::object::{Object, ObjectWriter, ShortFields, keyed_len, object_len};
use crate::{ClientError, FixedPoint, Layout, Sink};

const WHAT: &str = "the client's parameters";
/// Bytes of the descriptor.
const DESCRIPTOR: usize = 4 + 4 + 3 * 8 + 3 * 8 + IDENTITY_BYTES;

/// Plain description of a client's parameters, not yet checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLiteral {
    /// `log2(N)`.
    pub log_n: u32,
    /// `q_0`.
    pub modulus: u64,
    /// Distribution of the secret.
    pub secret: SecretDistribution,
    /// `D`, the coefficient of the number 1: at most 53 significant bits.
    pub scale: u64,
    /// Bits after the point of a number.
    pub fraction_bits: u32,
    /// Largest absolute value of a number, in units of its last place.
    pub max: i64,
    /// The places of numbers.
    pub layout: Layout,
    /// The server's parameters, as in the headers of its objects: ciphertexts and the secret belong to them.
    pub identity: IdentityBytes,
    /// The parameters of the same ring and secret with `q_0` alone, to which a client's public key belongs.
    pub entry_identity: IdentityBytes,
    /// The claims of ciphertexts: the deviation of the error of a number, encrypted with the public key and with the
    /// secret; the magnitude of numbers. Bits of IEEE doubles, which a client copies.
    pub estimate: [u64; 3],
}

/// Checked parameters of a client. Immutable, copied freely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientParameters {
    literal: ClientLiteral,
    modulus: Modulus,
    fixed_point: FixedPoint,
    security: Security,
}

impl ClientParameters {
    /// Bytes of [`Self::write_to`].
    pub const BYTES: usize = object_len(DESCRIPTOR, 0);

    /// Checks a literal.
    ///
    /// # Errors
    /// [`ClientError::Ring`] for a modulus out of range; [`ClientError::Insecure`] if `q_0` alone is too large for the
    /// ring, unless the identity marks the parameters as insecure; [`ClientError::Range`] for numbers that do not fit.
    pub fn new(literal: ClientLiteral) -> Result<Self, ClientError> {
        let ClientLiteral { log_n, modulus, secret, scale, fraction_bits, max, layout, identity, .. } =
            literal;
        in_range(
            "log2(N)",
            log_n.into(),
            keywright_ring::MIN_LOG_N.into(),
            keywright_ring::MAX_LOG_N.into(),
        )?;
        let checked = Modulus::new(modulus)?;
        if let SecretDistribution::Sparse { weight } = secret {
            in_range("Hamming weight of the secret", weight as u64, 1, 1 << log_n)?;
        }
        let server = Identity::from_bytes(&identity).map_err(frame_error(WHAT))?;
        if server.security == Security::Classical128 {
            let bound = maximum_log_qp(log_n, secret).unwrap_or(0);
            if checked.bits() > bound {
                return Err(ClientError::Insecure { bits: checked.bits(), log_n, bound });
            }
        }
        if let Layout::Slots { log_slots, .. } = layout {
            in_range("log2 of the number of slots", log_slots.into(), 0, (log_n - 1).into())?;
        }
        in_range("log2(N) of the server's identity", server.log_n.into(), log_n.into(), log_n.into())?;
        let fixed_point = FixedPoint::new(scale, fraction_bits, max, modulus)?;
        let significant = 64 - u64::from(scale.leading_zeros() + scale.trailing_zeros());
        in_range("significant bits of the scale", significant, 1, 53)?;
        Ok(Self { literal, modulus: checked, fixed_point, security: server.security })
    }

    /// The literal of these parameters.
    pub fn literal(&self) -> &ClientLiteral {
        &self.literal
    }

    /// Whether the server's parameters are within the 128-bit bound.
    pub fn security(&self) -> Security {
        self.security
    }

    /// `log2(N)`.
    pub fn log_n(&self) -> u32 {
        self.literal.log_n
    }

    /// Ring degree.
    pub fn n(&self) -> usize {
        1 << self.literal.log_n
    }

    /// `q_0`.
    pub fn modulus(&self) -> &Modulus {
        &self.modulus
    }

    /// The format of numbers.
    pub fn fixed_point(&self) -> &FixedPoint {
        &self.fixed_point
    }

    /// The places of numbers.
    pub fn layout(&self) -> Layout {
        self.literal.layout
    }

    /// Most numbers in one ciphertext.
    pub fn capacity(&self) -> usize {
        self.literal.layout.capacity(self.literal.log_n)
    }

    /// Bytes of a packed polynomial.
    pub fn polynomial_bytes(&self) -> usize {
        packed_len(self.n(), self.modulus.bits())
    }

    /// Bytes of a ciphertext made with the public key.
    pub fn ciphertext_bytes(&self) -> usize {
        keyed_len(CiphertextDescriptor::BYTES + MessageFields::BYTES, 2 * self.polynomial_bytes())
    }

    /// Bytes of a ciphertext made with the secret key, whose uniform half is a seed.
    pub fn seeded_ciphertext_bytes(&self) -> usize {
        keyed_len(SeededDescriptor::BYTES + MessageFields::BYTES, self.polynomial_bytes())
    }

    /// The claims of an outgoing ciphertext about its message.
    pub(crate) fn message(&self, symmetric: bool) -> MessageFields {
        let [public, secret, magnitude] = self.literal.estimate;
        let deviation = if symmetric { secret } else { public };
        MessageFields {
            log_slots: None,
            real: true,
            numbers: [double_bits(self.literal.scale), deviation, magnitude],
        }
    }

    /// Writes the parameters, as a server supplies them to its clients.
    ///
    /// # Errors
    /// [`ClientError::Sink`].
    pub fn write_to(&self, sink: &mut dyn Sink) -> Result<(), ClientError> {
        let l = &self.literal;
        let (form, log_slots) = match l.layout {
            Layout::Coefficients => (0, 0),
            Layout::Slots { log_slots, complex: false } => (1, log_slots),
            Layout::Slots { log_slots, complex: true } => (2, log_slots),
        };
        let mut fields = ShortFields::default();
        fields.put(&[l.log_n as u8, form, log_slots as u8, l.fraction_bits as u8]);
        l.secret.encode(&mut fields).map_err(frame_error(WHAT))?;
        for word in [l.modulus, l.scale, l.max as u64].into_iter().chain(l.estimate) {
            fields.u64(word);
        }
        fields.put(&l.entry_identity);
        let (kind, no_key) = (Kind::ClientParameters, KeyIdentity::UNKNOWN);
        ObjectWriter::start(sink, kind, &l.identity, &no_key, fields.as_slice(), 0)?.finish()
    }

    /// Reads parameters.
    ///
    /// # Errors
    /// [`ClientError::Format`], [`ClientError::Checksum`]; as [`Self::new`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ClientError> {
        let object = Object::read(WHAT, bytes)?;
        let mut fields = object.fields(Kind::ClientParameters, &object.identity)?;
        object.require_body(0)?;
        let [log_n, form, log_slots, fraction_bits] = fields.array()?;
        let secret = fields.take(SecretDistribution::decode)?;
        in_range("form of the layout", form.into(), 0, 2)?;
        let layout = match form {
            0 => {
                in_range("log2 of the number of slots of a coefficient layout", log_slots.into(), 0, 0)?;
                Layout::Coefficients
            }
            _ => Layout::Slots { log_slots: log_slots.into(), complex: form == 2 },
        };
        let (modulus, scale, max) = (fields.u64()?, fields.u64()?, fields.u64()? as i64);
        let estimate = [fields.u64()?, fields.u64()?, fields.u64()?];
        let entry_identity = fields.array()?;
        fields.finish()?;
        Self::new(ClientLiteral {
            log_n: log_n.into(),
            modulus,
            secret,
            scale,
            fraction_bits: fraction_bits.into(),
            max,
            layout,
            identity: object.identity,
            entry_identity,
            estimate,
        })
    }
}
