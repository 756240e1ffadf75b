use crate::FrameError;
use crate::error::in_range;
use crate::fields::{FieldReader, FieldSink, FieldWriter, Fields};

/// Form of real values in slots.
const REAL_SLOTS: u8 = 2;

/// The stored description of a CKKS message. Its real numbers are bits of doubles; this crate does not compute with
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageFields {
    /// `log2` of the number of slots; `None` for values in coefficients.
    pub log_slots: Option<u8>,
    /// Whether values in slots are known to be real; those in coefficients are.
    pub real: bool,
    /// Bits of scale, deviation and magnitude.
    pub numbers: [u64; 3],
}

impl MessageFields {
    /// Bytes of the fields.
    pub const BYTES: usize = 2 + 3 * 8;
}

impl Fields for MessageFields {
    fn encode<B: FieldSink>(&self, out: &mut FieldWriter<B>) -> Result<(), FrameError> {
        out.u8(match (self.log_slots, self.real) {
            (Some(_), false) => 0,
            (None, _) => 1,
            (Some(_), true) => REAL_SLOTS,
        });
        out.u8(self.log_slots.unwrap_or(0));
        self.numbers.iter().for_each(|&bits| out.u64(bits));
        Ok(())
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, FrameError> {
        let (form, log_slots) = (fields.u8()?, fields.u8()?);
        in_range("form of the packing", form.into(), 0, REAL_SLOTS.into())?;
        let coefficients = form == 1;
        if coefficients {
            in_range("log2 of the number of slots of a coefficient packing", log_slots.into(), 0, 0)?;
        }
        let numbers = [fields.u64()?, fields.u64()?, fields.u64()?];
        Ok(Self { log_slots: (!coefficients).then_some(log_slots), real: form != 0, numbers })
    }
}
