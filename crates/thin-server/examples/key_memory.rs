//! Measures the peak memory of making a server's keys, and checks that a cut stream resumes:
//! `cargo run --release -p keywright-thin-server --example key_memory [KEYS]`.
//!
//! The keys are those of a bootstrapping at `N = 2^16`. The largest are made first, so a few keys show the peak of all.
//! Linux reports the peak of the process.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program that reports or fails")]

use std::fs;
use std::time::Instant;

use keywright_circuits::bootstrapping::{BootstrapperPlan, bootstrap_preset};
use keywright_client::{Client, SinkError};
use keywright_ring::sampling::SecretRng;
use keywright_rlwe::{KeyElement, KeySpec};
use keywright_thin_server as server;

const PRESET: &str = "N16_QP1732_L9_S45";
/// Bytes that a client may use.
const BOUND: u64 = 64 << 20;

/// The largest resident size of this process so far, bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Length and CRC-32 of the output.
#[derive(Default)]
struct Sum {
    bytes: u64,
    checksum: crc32fast::Hasher,
}

fn main() {
    let count: usize = std::env::args().nth(1).map_or(3, |count| count.parse().unwrap());
    let preset = bootstrap_preset(PRESET).unwrap();
    let parameters = preset.parameters().unwrap();
    let (thin, mut specs) = {
        let plan = BootstrapperPlan::new(&parameters, &preset.bootstrapper).unwrap();
        let mut specs = plan.required_keys();
        specs.push(KeySpec::new(parameters.rlwe(), KeyElement::Relinearization, plan.slots_level(), 2, true));
        (server::client_parameters(&parameters, &plan, 30).unwrap(), specs)
    };
    let rlwe = parameters.rlwe();
    specs.sort_by_key(|spec| std::cmp::Reverse(spec.bytes(rlwe).unwrap()));
    let planned = peak();

    let mut platform = |out: &mut [u8]| {
        SecretRng::system()?.fill_bytes(out);
        Ok(())
    };
    let mut client = Client::generate(&thin, &mut platform).unwrap();
    let session = client.session().unwrap();
    let mut stream = client.keys(rlwe, &specs, &session).unwrap();
    println!(
        "{PRESET}: {} keys of {} bytes, the largest {}",
        specs.len(),
        stream.total_bytes(),
        stream.key_bytes(0)
    );
    let start = Instant::now();
    let mut last = Sum::default();
    let total = count.min(specs.len());
    for _ in 0..total {
        last = Sum::default();
        let mut sink = |bytes: &[u8]| {
            last.bytes += bytes.len() as u64;
            last.checksum.update(bytes);
            Ok(())
        };
        stream.write_next(&mut sink, &mut |_| ()).unwrap();
    }
    let seconds = start.elapsed().as_secs_f64();

    // Cut in the middle of the last key, and made again from the session.
    let mut stream = client.keys(rlwe, &specs, &session).unwrap();
    stream.skip_to(total - 1).unwrap();
    let mut room = last.bytes / 2;
    let mut line = |bytes: &[u8]| {
        room = room.checked_sub(bytes.len() as u64).ok_or(SinkError("the line is cut"))?;
        Ok(())
    };
    assert!(stream.write_next(&mut line, &mut |_| ()).is_err());
    let mut stream = client.keys(rlwe, &specs, &session).unwrap();
    stream.skip_to(total - 1).unwrap();
    let mut again = Sum::default();
    let mut sink = |bytes: &[u8]| {
        again.bytes += bytes.len() as u64;
        again.checksum.update(bytes);
        Ok(())
    };
    stream.write_next(&mut sink, &mut |_| ()).unwrap();
    assert_eq!(again.bytes, last.bytes);
    assert_eq!(again.checksum.finalize(), last.checksum.finalize(), "another key");

    let peak = peak();
    println!("{total} keys in {seconds:.1} s; the last one was cut and made again, the same bytes");
    println!("peak of the process {:.1} MB, of which the plan took {:.1} MB before", mb(peak), mb(planned));
    assert!(peak <= BOUND, "more than {BOUND} bytes");
}

fn mb(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
