//! Objects of `keywright-aggregation`.

use std::io::{Read, Write};

use keywright_aggregation::{
    Binding, Contributor, EncryptedSum, EncryptedUpdate, MAX_INPUTS, Residues, RunId, SumParameters,
};
use keywright_frame::{FieldReader, FieldWriter};
use keywright_ring::Seed;

use crate::object::{Descriptor, Record};
use crate::stream::body::{BodyReader, BodyWriter};
use crate::{Kind, Wire, WireError, error::in_range};

/// Bytes of a [`Contributor`] in a body.
const CONTRIBUTOR_BYTES: usize = 8 + 4 + 32;

/// The common fields of an update and a sum: the declared parameters, the run, the round and the number of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    max_inputs: u32,
    magnitude: u64,
    session: RunId,
    round: u32,
    count: u32,
}

impl Shape {
    fn new(parameters: &SumParameters, session: RunId, round: u32, count: usize) -> Self {
        let (max_inputs, magnitude) = (parameters.max_inputs(), parameters.magnitude());
        Self { max_inputs, magnitude, session, round, count: count as u32 }
    }

    fn encode(&self, out: &mut FieldWriter) {
        out.u32(self.max_inputs);
        out.u64(self.magnitude);
        out.put(&self.session);
        out.u32(self.round);
        out.u32(self.count);
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, WireError> {
        Ok(Self {
            max_inputs: fields.u32()?,
            magnitude: fields.u64()?,
            session: fields.array()?,
            round: fields.u32()?,
            count: fields.u32()?,
        })
    }

    /// Bytes of the residues, after a comparison of the declarations.
    fn residue_bytes(&self, parameters: &SumParameters) -> Result<u64, WireError> {
        let (inputs, magnitude) = (parameters.max_inputs().into(), parameters.magnitude());
        in_range("declared number of updates", self.max_inputs.into(), inputs, inputs)?;
        in_range("declared magnitude", self.magnitude, magnitude, magnitude)?;
        in_range("number of values", self.count.into(), 1, u32::MAX.into())?;
        Ok(u64::from(self.count) * parameters.value_bytes() as u64)
    }
}

/// The claims of an encrypted update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpdateDescriptor {
    shape: Shape,
    client: u64,
    weight: u32,
    seed: Seed,
}

impl UpdateDescriptor {
    /// Session, round, client and weight.
    pub fn binding(&self) -> Binding {
        let (session, round) = (self.shape.session, self.shape.round);
        Binding { session, round, client: self.client, weight: self.weight }
    }

    /// Number of values.
    pub fn count(&self) -> u32 {
        self.shape.count
    }
}

impl Descriptor for UpdateDescriptor {
    fn encode(&self, out: &mut FieldWriter) -> Result<(), WireError> {
        self.shape.encode(out);
        out.u64(self.client);
        out.u32(self.weight);
        out.seed(&self.seed);
        Ok(())
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, WireError> {
        let shape = Shape::decode(fields)?;
        Ok(Self { shape, client: fields.u64()?, weight: fields.u32()?, seed: fields.seed()? })
    }
}

/// Everything but the residues in the header, their planes in the body.
impl Record for EncryptedUpdate {
    type Context = SumParameters;
    type Descriptor = UpdateDescriptor;
    const KIND: Kind = Kind::EncryptedUpdate;

    fn descriptor(&self, parameters: &SumParameters) -> Result<UpdateDescriptor, WireError> {
        require_width(self.residues(), parameters)?;
        let Binding { session, round, client, weight } = *self.binding();
        let shape = Shape::new(parameters, session, round, self.count());
        Ok(UpdateDescriptor { shape, client, weight, seed: *self.seed() })
    }

    fn body_len(descriptor: &UpdateDescriptor, parameters: &SumParameters) -> Result<u64, WireError> {
        in_range("weight", descriptor.weight.into(), 1, u32::MAX.into())?;
        descriptor.shape.residue_bytes(parameters)
    }

    fn write_body<W: Write>(&self, body: &mut BodyWriter<W>, _: &SumParameters) -> Result<(), WireError> {
        Ok(body.write_all(self.residues().planes())?)
    }

    fn read_body<R: Read>(
        descriptor: UpdateDescriptor,
        body: &mut BodyReader<R>,
        parameters: &SumParameters,
    ) -> Result<Self, WireError> {
        let residues = read_residues(body, &descriptor.shape, parameters)?;
        Ok(Self::new(parameters, descriptor.binding(), descriptor.seed, residues)?)
    }
}

impl Wire for EncryptedUpdate {}

/// The claims of a sum of encrypted updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SumDescriptor {
    shape: Shape,
    inputs: u32,
}

impl SumDescriptor {
    /// Number of values.
    pub fn count(&self) -> u32 {
        self.shape.count
    }

    /// Number of updates.
    pub fn inputs(&self) -> u32 {
        self.inputs
    }
}

impl Descriptor for SumDescriptor {
    fn encode(&self, out: &mut FieldWriter) -> Result<(), WireError> {
        self.shape.encode(out);
        out.u32(self.inputs);
        Ok(())
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, WireError> {
        Ok(Self { shape: Shape::decode(fields)?, inputs: fields.u32()? })
    }
}

/// Client, weight and seed of every summand, then the planes of the residues.
impl Record for EncryptedSum {
    type Context = SumParameters;
    type Descriptor = SumDescriptor;
    const KIND: Kind = Kind::EncryptedSum;

    fn descriptor(&self, parameters: &SumParameters) -> Result<SumDescriptor, WireError> {
        require_width(self.residues(), parameters)?;
        let shape = Shape::new(parameters, *self.session(), self.round(), self.count());
        Ok(SumDescriptor { shape, inputs: self.contributors().len() as u32 })
    }

    fn body_len(descriptor: &SumDescriptor, parameters: &SumParameters) -> Result<u64, WireError> {
        let capacity = parameters.capacity().min(MAX_INPUTS);
        in_range("number of updates of a sum", descriptor.inputs.into(), 1, capacity.into())?;
        let residues = descriptor.shape.residue_bytes(parameters)?;
        Ok(u64::from(descriptor.inputs) * CONTRIBUTOR_BYTES as u64 + residues)
    }

    fn write_body<W: Write>(&self, body: &mut BodyWriter<W>, _: &SumParameters) -> Result<(), WireError> {
        for contributor in self.contributors() {
            body.write_all(&contributor.client.to_le_bytes())?;
            body.write_all(&contributor.weight.to_le_bytes())?;
            body.write_all(&contributor.seed.0)?;
        }
        Ok(body.write_all(self.residues().planes())?)
    }

    fn read_body<R: Read>(
        descriptor: SumDescriptor,
        body: &mut BodyReader<R>,
        parameters: &SumParameters,
    ) -> Result<Self, WireError> {
        let mut contributors = Vec::new();
        for _ in 0..descriptor.inputs {
            let mut bytes = [0; CONTRIBUTOR_BYTES];
            body.bytes(&mut bytes)?;
            let mut fields = FieldReader::new(&bytes);
            let (client, weight) = (fields.u64()?, fields.u32()?);
            contributors.push(Contributor { client, weight, seed: fields.seed()? });
        }
        let residues = read_residues(body, &descriptor.shape, parameters)?;
        let Shape { session, round, .. } = descriptor.shape;
        Ok(Self::new(parameters, session, round, contributors, residues)?)
    }
}

impl Wire for EncryptedSum {}

fn require_width(residues: &Residues, parameters: &SumParameters) -> Result<(), WireError> {
    let width = parameters.value_bytes() as u64;
    in_range("bytes of a residue", residues.width() as u64, width, width)
}

/// Memory grows as bytes arrive: a header alone costs nothing.
fn read_residues<R: Read>(
    body: &mut BodyReader<R>,
    shape: &Shape,
    parameters: &SumParameters,
) -> Result<Residues, WireError> {
    let needed = shape.residue_bytes(parameters)?;
    let mut planes = Vec::new();
    body.take(needed).read_to_end(&mut planes)?;
    let missing = needed - planes.len() as u64;
    let truncated = WireError::Truncated { what: "the body", needed, missing };
    if missing > 0 {
        return Err(truncated);
    }
    Residues::from_planes(parameters.value_bytes(), planes).ok_or(truncated)
}
