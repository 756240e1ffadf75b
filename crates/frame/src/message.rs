use crate::FrameError;
use crate::error::in_range;
use crate::fields::{FieldReader, FieldSink, FieldWriter, Fields};

/// How to read a CKKS message, as it is stored. Its real numbers are bits of doubles: nobody here computes with
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageFields {
    /// `log2` of the number of slots; `None` for values in coefficients.
    pub log_slots: Option<u8>,
    /// Bits of scale, deviation and magnitude.
    pub numbers: [u64; 3],
}

impl MessageFields {
    /// Bytes of the fields.
    pub const BYTES: usize = 2 + 3 * 8;
}

impl Fields for MessageFields {
    fn encode<B: FieldSink>(&self, out: &mut FieldWriter<B>) -> Result<(), FrameError> {
        out.u8(self.log_slots.is_none().into());
        out.u8(self.log_slots.unwrap_or(0));
        self.numbers.iter().for_each(|&bits| out.u64(bits));
        Ok(())
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, FrameError> {
        let coefficients = fields.flag("form of the packing")?;
        let log_slots = fields.u8()?;
        if coefficients {
            in_range("log2 of the number of slots of a coefficient packing", log_slots.into(), 0, 0)?;
        }
        let numbers = [fields.u64()?, fields.u64()?, fields.u64()?];
        Ok(Self { log_slots: (!coefficients).then_some(log_slots), numbers })
    }
}
