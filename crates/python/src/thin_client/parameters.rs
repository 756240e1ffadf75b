use keywright_client::{ClientError, ClientParameters, Form, Groups, Layout, Numbers};
use keywright_rlwe::Security;
use keywright_thin_server as server;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zeroize::Zeroizing;

use crate::arguments::array::{Integers, log_slots};
use crate::arguments::integers::integers;
use crate::ckks::ciphertext::PyCiphertext;
use crate::classes::getters::getters;
use crate::errors::{Failure, Refusal};
use crate::parameters::ckks::PyParameters;
use crate::stored::not_pickled;
use crate::threads::compute;

/// The data of a server that a thin client needs: one prime, a fixed-point format and the places of numbers. Numbers
/// are integers in units of `2^-fraction_bits`.
///
/// A server whose bootstrapping takes a client's numbers supplies `BootstrapperPlan.client_parameters`; use this
/// constructor for a server that computes on coefficients or slots directly.
///
/// Thread safety: any number of threads may use one at the same time.
///
/// Args:
///     parameters: the server's; the client uses only their first prime.
///     scale: the coefficient of the number 1, an integer of at most 53 significant bits and at most a quarter of the
///         prime.
///     fraction_bits: bits of a number after the point, at most log2 of the scale. Numbers are at most 1, so integers
///         at most `2^fraction_bits`.
///     slots: numbers are placed for this many slots of `coeffs_to_slots`, a power of two up to N/2; by default number
///         j is in coefficient j.
///     values: "complex", with imaginary parts as the second half of the numbers, or "real".
///
/// Raises:
///     ParameterError: a number outside its range.
///     SecurityError: the first prime is too large for the ring.
#[pyclass(name = "ClientParameters", module = "keywright", frozen, eq, from_py_object)]
#[derive(Clone, PartialEq)]
pub(crate) struct PyClientParameters(pub(crate) ClientParameters);

/// Evaluation form, or compact form without low bits.
pub(crate) fn form(dropped: Option<[u32; 2]>) -> Form {
    dropped.map_or(Form::Evaluations, Form::Compact)
}

not_pickled!(PyClientParameters);

#[integers]
#[pymethods]
impl PyClientParameters {
    #[new]
    #[pyo3(signature = (parameters, *, scale, fraction_bits, slots=None, values="complex"))]
    fn new(
        parameters: &PyParameters,
        scale: u64,
        fraction_bits: u32,
        slots: Option<usize>,
        values: &str,
    ) -> Result<Self, Failure> {
        let complex = Refusal::choice("values", values, &[("complex", true), ("real", false)], None)?;
        let layout = match slots {
            None => Layout::Coefficients,
            Some(_) => Layout::Slots { log_slots: log_slots(&parameters.0, slots)?, complex },
        };
        Ok(Self(server::parameters_at(&parameters.0, scale, fraction_bits, layout)?))
    }

    /// Whether the security bound is switched off.
    #[getter]
    fn insecure(&self) -> bool {
        self.0.security() == Security::InsecureForExperiments
    }

    /// Number of slots of the numbers; None if they stay in coefficients.
    #[getter]
    fn slots(&self) -> Option<usize> {
        match self.0.layout() {
            Layout::Coefficients => None,
            Layout::Slots { log_slots, .. } => Some(1 << log_slots),
        }
    }

    /// "complex" or "real": whether the second half of the numbers are imaginary parts; None if they stay in
    /// coefficients.
    #[getter]
    fn values(&self) -> Option<&'static str> {
        match self.0.layout() {
            Layout::Coefficients => None,
            Layout::Slots { complex: true, .. } => Some("complex"),
            Layout::Slots { complex: false, .. } => Some("real"),
        }
    }

    /// Bytes of a ciphertext.
    ///
    /// Args:
    ///     secret: made with the secret, so that half of it is a seed; otherwise with the public key.
    ///     dropped: for compact form, the low bits dropped from each half; None for a whole ciphertext.
    #[pyo3(signature = (*, secret=true, dropped=None))]
    fn ciphertext_bytes(&self, secret: bool, dropped: Option<[u32; 2]>) -> Result<usize, Failure> {
        Ok(self.0.form_bytes(form(dropped), secret)?)
    }

    /// The number of integers of this many bits in one number: see `group`.
    ///
    /// Raises:
    ///     ParameterError: a number cannot hold one.
    fn group_size(&self, bits: u32) -> Result<usize, Failure> {
        Ok(Groups::new(&self.0, bits)?.each())
    }

    /// Numbers of several small integers each, for encryption: `group_size(bits)` integers `x_i` as
    /// `x_0 + 2^bits x_1 + ..`.
    ///
    /// A server can add them, and multiply them by small integers, while every sum of integers stays below `2^bits`; it
    /// must not split them.
    ///
    /// Args:
    ///     integers: non-negative ones below `2^bits`.
    ///     bits: of one of them, with room for the sums of the server.
    ///
    /// Raises:
    ///     EncodeError: an integer out of range.
    ///     ParameterError: as for `group_size`.
    fn group<'py>(
        &self,
        py: Python<'py>,
        integers: &Bound<'py, PyAny>,
        bits: u32,
    ) -> Result<Bound<'py, PyArray1<i64>>, Failure> {
        let (groups, integers) = (Groups::new(&self.0, bits)?, Zeroizing::new(Integers::vector(integers)?));
        let grouped = groups.group(&integers[..])?;
        let numbers: Vec<i64> = (0..grouped.count()).map(|index| grouped.at(index)).collect();
        Ok(numbers.into_pyarray(py))
    }

    /// The small integers of decrypted numbers: the inverse of `group`. Exact if the error of every number is below
    /// half a unit of its last place.
    ///
    /// Args:
    ///     numbers: from `Client.decrypt`.
    ///     bits: as for `group`.
    ///     count: number of integers; as many as the numbers hold by default.
    ///
    /// Raises:
    ///     EncodeError: count is more than the numbers hold, or a number is not in 0..2^(bits * group_size(bits)).
    ///     ParameterError: as for `group_size`.
    #[pyo3(signature = (numbers, bits, count=None))]
    fn split<'py>(
        &self,
        py: Python<'py>,
        numbers: &Bound<'py, PyAny>,
        bits: u32,
        count: Option<usize>,
    ) -> Result<Bound<'py, PyArray1<i64>>, Failure> {
        let (groups, numbers) = (Groups::new(&self.0, bits)?, Zeroizing::new(Integers::vector(numbers)?));
        let most = groups.each() * numbers.len();
        let count = count.unwrap_or(most);
        if count > most {
            let what = "integers to split off (at most)";
            return Err(ClientError::Length { what, found: count, expected: most }.into());
        }
        let mut integers = vec![0; count];
        groups.split(&numbers, &mut integers)?;
        Ok(integers.into_pyarray(py))
    }

    /// The parameters as bytes, for a server to supply.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        let mut bytes = Vec::with_capacity(ClientParameters::BYTES);
        self.0.write_to(&mut bytes)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Parameters from the bytes of `to_bytes`.
    ///
    /// Args:
    ///     insecure: also accept those of a server whose parameters were made with `insecure`.
    ///
    /// Raises:
    ///     FormatError: the bytes are not whole, intact parameters of a client.
    ///     ParameterError: no client can have these parameters.
    ///     SecurityError: the first prime is too large for the ring, or the server's parameters were made with
    ///         `insecure`.
    #[staticmethod]
    #[pyo3(signature = (data, *, insecure=false))]
    fn from_bytes(data: &[u8], insecure: bool) -> Result<Self, Failure> {
        let parameters = Self(ClientParameters::from_bytes(data)?);
        if parameters.insecure() && !insecure {
            return Err(Refusal::Unchecked.into());
        }
        Ok(parameters)
    }

    /// Reads a client's upload, on the server, in any of its forms: a ciphertext at level 0 with its values in
    /// coefficients.
    ///
    /// Raises:
    ///     FormatError: the bytes are not a whole, intact ciphertext of such a client; a secret key is refused too.
    ///     MismatchError: it belongs to other parameters.
    fn read_upload(
        &self,
        py: Python<'_>,
        data: &[u8],
        parameters: &PyParameters,
    ) -> Result<PyCiphertext, Failure> {
        compute(py, || server::read_upload(data, &parameters.0, &self.0)).map(PyCiphertext)
    }

    /// Makes a server's answer: the numbers' coefficients modulo the first prime, of a ciphertext at any level whose
    /// values are in coefficients.
    ///
    /// Args:
    ///     growth: low bits are dropped while the error's deviation grows at most by this factor; None drops none.
    ///
    /// Raises:
    ///     OperandError: its values are in slots.
    ///     ScaleError: values and error do not fit the first prime.
    ///     ParameterError: growth is not above 1.
    #[pyo3(signature = (ciphertext, growth=None))]
    fn write_answer<'py>(
        &self,
        py: Python<'py>,
        ciphertext: &PyCiphertext,
        growth: Option<f64>,
    ) -> Result<Bound<'py, PyBytes>, Failure> {
        let answer = compute(py, || {
            let dropped = growth.map_or(Ok([0, 0]), |growth| server::droppable(&ciphertext.0, growth))?;
            let mut answer = Vec::new();
            server::write_answer(&ciphertext.0, self.0.layout(), dropped, &mut answer)?;
            Ok::<_, server::ServerError>(answer)
        })?;
        Ok(PyBytes::new(py, &answer))
    }

    fn __repr__(&self) -> String {
        let place = match self.slots() {
            None => "coefficients".into(),
            Some(slots) => format!("{slots} {} slots", self.values().unwrap_or_default()),
        };
        format!(
            "ClientParameters(N = 2^{}, {} bits, {place}, {} fraction bits{})",
            self.log_n(),
            self.0.modulus().bits(),
            self.fraction_bits(),
            if self.insecure() { ", security none (insecure)" } else { "" }
        )
    }
}

getters! { PyClientParameters, self;
    /// log2 of the ring degree.
    log_n: u32 = self.0.log_n();
    /// The one prime.
    modulus: u64 = self.0.modulus().value();
    /// The coefficient of the number 1.
    scale: u64 = self.0.fixed_point().scale();
    /// Bits of a number after the point.
    fraction_bits: u32 = self.0.fixed_point().fraction_bits();
    /// Largest absolute value of a number, in units of its last place.
    maximum: i64 = self.0.fixed_point().max();
    /// Most numbers in a ciphertext.
    capacity: usize = self.0.capacity();
}
