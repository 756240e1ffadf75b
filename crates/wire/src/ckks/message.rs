use keywright_ckks::{CkksParameters, ErrorEstimate, Packing};
use keywright_frame::{FieldReader, FieldWriter, MessageFields};

use crate::object::Descriptor;
use crate::{WireError, error::in_range};

/// The description of a message: scale, packing and the sender's claims about its size and error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MessageDescriptor {
    /// Factor by which the message is scaled.
    pub scale: f64,
    /// The places of its values.
    pub packing: Packing,
    /// The sender's claims about deviation and magnitude.
    pub estimate: ErrorEstimate,
}

/// Refuses meaningless numbers: NaN, infinities, negative numbers (including negative zero, so that every number has
/// one encoding), and a scale of zero.
fn require_meaning(what: &'static str, value: f64, zero_allowed: bool) -> Result<(), WireError> {
    let legal = value.is_finite() && value.is_sign_positive() && (zero_allowed || value > 0.0);
    if legal { Ok(()) } else { Err(WireError::Number { what, value }) }
}

impl MessageDescriptor {
    fn require_legal(&self) -> Result<(), WireError> {
        require_meaning("scale", self.scale, false)?;
        require_meaning("deviation of the error estimate", self.estimate.deviation, true)?;
        require_meaning("magnitude of the message", self.estimate.magnitude, true)
    }

    /// Refuses more slots than the ring has.
    pub(crate) fn require_fit(&self, parameters: &CkksParameters) -> Result<(), WireError> {
        let Packing::Slots { log_slots } = self.packing else { return Ok(()) };
        in_range("log2 of the number of slots", log_slots.into(), 0, parameters.max_log_slots().into())
    }
}

impl Descriptor for MessageDescriptor {
    /// A bound beyond the finite numbers is written as the largest of them: both carry no information.
    fn encode(&self, out: &mut FieldWriter) -> Result<(), WireError> {
        let ErrorEstimate { deviation, magnitude, real } = self.estimate;
        let finite = |bound: f64| if bound == f64::INFINITY { f64::MAX } else { bound };
        let (deviation, magnitude) = (finite(deviation), finite(magnitude));
        let stated = Self { estimate: ErrorEstimate { deviation, magnitude, real }, ..*self };
        stated.require_legal()?;
        let log_slots = match self.packing {
            Packing::Slots { log_slots } => {
                in_range("log2 of the number of slots", log_slots.into(), 0, u8::MAX.into())?;
                Some(log_slots as u8)
            }
            Packing::Coefficients => None,
        };
        let numbers = [self.scale, deviation, magnitude].map(f64::to_bits);
        MessageFields { log_slots, real, numbers }.encode(out)
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, WireError> {
        let MessageFields { log_slots, real, numbers } = Descriptor::decode(fields)?;
        let packing = log_slots
            .map_or(Packing::Coefficients, |log_slots| Packing::Slots { log_slots: log_slots.into() });
        let [scale, deviation, magnitude] = numbers.map(f64::from_bits);
        let message = Self { scale, packing, estimate: ErrorEstimate { deviation, magnitude, real } };
        message.require_legal()?;
        Ok(message)
    }
}
