//! Frames of a camera, encrypted by a thin client: figure 11 of Aikata, Krieger and Sinha Roy, from measured times and
//! real bytes.
//!
//! Pixels have 8 bits. `k` of them make one number `p_0 + 2^8 p_1 + ...`, whose coefficient is a multiple of `D`, a
//! power of two. Decryption is exact if every error is below `D / 2`. The largest number times `D` is at most
//! `q_0 / 4`, the client's own bound. With `TAIL` deviations for an error,
//!
//! ```text
//! TAIL sqrt(variance + 2^(2 d) / 12) < D / 2,    (2^(8 k) - 1) D <= q_0 / 4,
//! ```
//!
//! where `d` low bits of a coefficient are dropped (compact form, secret key). Each case takes the largest `k` for
//! `d = 0`, or the largest `d` for `k = 1`. A server computes on one pixel in a coefficient, because it cannot split a
//! number.
//!
//! A ciphertext holds as many whole frames as fit. If a frame is larger, it takes as few ciphertexts as possible.

use std::time::Instant;

use keywright_bench::measuring::rng;
use keywright_client::{
    Client, ClientLiteral, ClientParameters, Encryptor, Form, Groups, Layout,
    reduction::{ShiftAdd30, ShiftAdd60},
};
use keywright_rlwe::{Parameters, ParametersLiteral, SecretDistribution, Security, noise};

use crate::StudyError;

const PIXEL_BITS: u32 = 8;

/// A clip and the ring in which it is encrypted.
#[derive(Debug, Clone, Copy)]
pub struct VideoRequest<'c> {
    /// Frames in order, a byte for each pixel.
    pub clip: &'c [u8],
    /// Pixels of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// `log2(N)`.
    pub log_n: u32,
}

/// One way to send the clip. Every frame was decrypted and is equal.
#[derive(Debug, Clone, PartialEq)]
pub struct VideoRecord {
    /// `log2(N)`.
    pub log_n: u32,
    /// Pixels of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Frames of the clip.
    pub frames: usize,
    /// Bits of `q_0`.
    pub bits: u32,
    /// `public` for the public key, `secret` for the compact form under the secret key, `compact` for that form without
    /// low bits.
    pub form: &'static str,
    /// Pixels in a coefficient.
    pub pixels: usize,
    /// Low bits that were dropped.
    pub dropped: u32,
    /// Bytes of a ciphertext.
    pub bytes: usize,
    /// Frames in a ciphertext, 1 if a frame takes several.
    pub frames_each: usize,
    /// Ciphertexts for this number of frames.
    pub ciphertexts_each: usize,
    /// Median seconds to encrypt a ciphertext, from pixels to bytes.
    pub encrypt_s: f64,
    /// Median seconds to decrypt one, from bytes to pixels.
    pub decrypt_s: f64,
}

impl VideoRecord {
    /// The record as one JSON object.
    pub fn json(&self) -> String {
        format!(
            "{{\"log_n\":{},\"width\":{},\"height\":{},\"frames\":{},\"bits\":{},\"form\":\"{}\",\"pixels\":{},\"dropped\":{},\
             \"bytes\":{},\"frames_each\":{},\"ciphertexts_each\":{},\"encrypt_s\":{:.7},\"decrypt_s\":{:.7},\"checked\":true}}",
            self.log_n,
            self.width,
            self.height,
            self.frames,
            self.bits,
            self.form,
            self.pixels,
            self.dropped,
            self.bytes,
            self.frames_each,
            self.ciphertexts_each,
            self.encrypt_s,
            self.decrypt_s
        )
    }
}

/// `log2(D)`: the smallest power of two such that errors of this variance are below its half.
fn log_unit(variance: f64) -> u32 {
    (0..62).find(|&bits| noise::TAIL * variance.sqrt() < f64::from(bits).exp2() / 2.0).unwrap_or(62)
}

/// The largest number of this many pixels.
fn largest(pixels: usize) -> u64 {
    (1 << (PIXEL_BITS as usize * pixels)) - 1
}

/// Pixels in a coefficient, bits of `D`, bits dropped.
fn most_pixels(modulus: u64, variance: f64) -> (usize, u32, u32) {
    let unit = log_unit(variance);
    let fits = |&pixels: &usize| largest(pixels) <= modulus >> 2 >> unit;
    ((1..8).take_while(fits).last().unwrap_or(0), unit, 0)
}

/// The same for one pixel in a coefficient and as many dropped bits as possible.
fn most_dropped(modulus: u64, variance: f64) -> (usize, u32, u32) {
    let unit = ((modulus >> 2) / largest(1)).ilog2();
    let fits = |&dropped: &u32| log_unit(variance + (2.0 * f64::from(dropped)).exp2() / 12.0) <= unit;
    (1, unit, (0..unit).take_while(fits).last().unwrap_or(0))
}

/// Whether the ring is one for tests.
fn insecure(log_n: u32) -> bool {
    log_n < 12
}

fn parameters(log_n: u32, modulus: u64, pixels: usize, unit: u32) -> Result<ClientParameters, StudyError> {
    let mut identity = [0; 20];
    identity[0] = log_n as u8;
    identity[3] = u8::from(insecure(log_n));
    Ok(ClientParameters::new(ClientLiteral {
        log_n,
        modulus,
        secret: SecretDistribution::Ternary,
        scale: 1 << unit,
        fraction_bits: 0,
        max: largest(pixels) as i64,
        layout: Layout::Slots { log_slots: log_n - 1, complex: true },
        identity,
        entry_identity: identity,
        estimate: [0; 3],
    })?)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Encrypts and decrypts the clip in every way. `emit` gets each result when it is ready.
///
/// # Errors
/// [`StudyError::Clip`] if the clip is not a whole number of frames; [`StudyError::Wrong`] if a decrypted frame
/// differs; errors of the client.
pub fn run_video(request: &VideoRequest<'_>, emit: &mut dyn FnMut(VideoRecord)) -> Result<(), StudyError> {
    let VideoRequest { clip, width, height, log_n } = *request;
    let frame = width.saturating_mul(height);
    if frame == 0 || clip.is_empty() || !clip.len().is_multiple_of(frame) {
        return Err(StudyError::Clip { bytes: clip.len(), width, height });
    }
    for modulus in [ShiftAdd30::MODULUS, ShiftAdd60::MODULUS] {
        let ring = Parameters::new(ParametersLiteral {
            log_n,
            q: vec![modulus],
            p: Vec::new(),
            secret: SecretDistribution::Ternary,
            security: if insecure(log_n) { Security::InsecureForExperiments } else { Security::Classical128 },
            subrings: Vec::new(),
        })?;
        let (public, secret) = (noise::fresh_public(&ring), noise::fresh_symmetric());
        let mut cases = Vec::new();
        for (form, variance) in [("public", public), ("secret", secret)] {
            let most = most_pixels(modulus, variance);
            cases.extend([(form, (most.0.min(1), most.1, 0)), (form, most)]);
        }
        cases.push(("compact", most_dropped(modulus, secret)));
        // Noise may be too large for any pixel.
        cases.retain(|&(_, (pixels, ..))| pixels > 0);
        cases.dedup();
        for (form, (pixels, unit, dropped)) in cases {
            let parameters = parameters(log_n, modulus, pixels, unit)?;
            emit(send(request, &parameters, form, pixels, dropped)?);
        }
    }
    Ok(())
}

fn send(
    request: &VideoRequest<'_>,
    parameters: &ClientParameters,
    form: &'static str,
    pixels: usize,
    dropped: u32,
) -> Result<VideoRecord, StudyError> {
    let VideoRequest { clip, width, height, log_n } = *request;
    let (frame, room) = (width * height, parameters.capacity() * pixels);
    let (frames_each, ciphertexts_each) =
        if frame <= room { (room / frame, 1) } else { (1, frame.div_ceil(room)) };
    let mut entropy = rng(7);
    let mut entropy = |out: &mut [u8]| {
        entropy.fill_bytes(out);
        Ok(())
    };
    let mut owner = Client::generate(parameters, &mut entropy)?;
    let mut key = Vec::new();
    owner.public_key(&mut key)?;
    let mut camera = Encryptor::new(parameters, &key, &mut entropy)?;
    let groups = Groups::new(parameters, PIXEL_BITS)?;
    let mut bytes = Vec::with_capacity(parameters.ciphertext_bytes());
    let (mut numbers, mut found) = (vec![0; parameters.capacity()], vec![0; room]);
    let (mut encrypting, mut decrypting) = (Vec::new(), Vec::new());
    let mut largest = 0;
    for group in clip.chunks(frames_each * frame) {
        for part in group.chunks(room) {
            let start = Instant::now();
            let grouped = groups.group(part)?;
            bytes.clear();
            match form {
                "public" => camera.encrypt(&grouped, Form::Evaluations, &mut bytes)?,
                _ => owner.encrypt(&grouped, Form::Compact([dropped, 0]), &mut bytes)?,
            }
            encrypting.push(start.elapsed().as_secs_f64());
            let start = Instant::now();
            let (numbers, found) = (&mut numbers[..groups.count(part.len())], &mut found[..part.len()]);
            owner.decrypt(&bytes, numbers)?;
            groups.split(numbers, found)?;
            let equal = found.iter().zip(part).all(|(found, &pixel)| *found == i64::from(pixel));
            decrypting.push(start.elapsed().as_secs_f64());
            if !equal {
                let what = format!("{form}, {pixels} pixels in a coefficient: a frame came back changed");
                return Err(StudyError::Wrong(what));
            }
            largest = largest.max(bytes.len());
        }
    }
    Ok(VideoRecord {
        log_n,
        width,
        height,
        frames: clip.len() / frame,
        bits: parameters.modulus().bits(),
        form,
        pixels,
        dropped,
        bytes: largest,
        frames_each,
        ciphertexts_each,
        encrypt_s: median(&mut encrypting),
        decrypt_s: median(&mut decrypting),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_comes_back_in_every_way() {
        let mut source = rng(5);
        // More and less than one ciphertext; every pixel value, and the largest numbers.
        for (width, height, frames) in [(40, 30, 7), (80, 60, 2)] {
            let mut clip: Vec<u8> = (0..width * height * frames).map(|_| source.next_word() as u8).collect();
            clip[..64].fill(255);
            let request = VideoRequest { clip: &clip, width, height, log_n: 11 };
            let mut records = Vec::new();
            run_video(&request, &mut |record| records.push(record)).unwrap();
            assert!(records.iter().any(|record| record.pixels >= 5));
            assert!(records.iter().any(|record| record.form == "compact" && record.dropped > 30));
            for record in &records {
                let room = 2048 * record.pixels * record.ciphertexts_each;
                assert!(record.frames_each * width * height <= room, "{record:?}");
            }
            assert!(records[0].json().contains("\"form\":\"public\",\"pixels\":1"));
        }
        let ragged = VideoRequest { clip: &[0; 10], width: 3, height: 2, log_n: 11 };
        assert!(matches!(run_video(&ragged, &mut |_| ()), Err(StudyError::Clip { bytes: 10, .. })));
        let empty = VideoRequest { clip: &[], width: 3, height: 2, log_n: 11 };
        assert!(matches!(run_video(&empty, &mut |_| ()), Err(StudyError::Clip { .. })));
    }
}
