//! Predicted memory against allocated memory. A single test, because other threads would add to the measurement.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicIsize, Ordering};

use keywright_circuits::linear_transform::{BsgsPlan, LinearTransform, ScratchShape, Storage, evaluate};
use keywright_circuits::polynomial::{self, Basis, Polynomial, PolynomialPlan};
use keywright_ckks::{CkksLiteral, CkksParameters, Complex64, Encryptor, Evaluator};
use keywright_ring::sampling::SecretRng;
use keywright_ring::{buffer_use, reset_peak, rotation_element, trim_cache};
use keywright_rlwe::{KeyElement, KeyGenerator, KeySpec, SecretKey, Security};
use zeroize::Zeroizing;

/// Counts allocations that are not buffers of the ring, whose alignment is at least a cache line.
struct Counting;

static HELD: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

fn count(layout: Layout, sign: isize) {
    if layout.align() < 64 {
        let change = sign * layout.size() as isize;
        PEAK.fetch_max(HELD.fetch_add(change, Ordering::Relaxed) + change, Ordering::Relaxed);
    }
}

// SAFETY: the system's allocator does all of the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout, 1);
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout, -1);
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Peak bytes of some work in addition to those before it, including its result.
fn peak<T>(work: impl FnOnce() -> T) -> f64 {
    trim_cache();
    reset_peak();
    let (live, held) = (buffer_use().live, HELD.load(Ordering::Relaxed));
    PEAK.store(held, Ordering::Relaxed);
    let result = work();
    let others = PEAK.load(Ordering::Relaxed) - held;
    let bytes = (buffer_use().peak - live) as f64 + others as f64;
    drop(result);
    bytes
}

/// Several threads need not reach their peaks at the same time, so the prediction for them is a bound.
fn require(what: &str, threads: usize, predicted: usize, measured: f64) {
    let ratio = predicted as f64 / measured;
    let most = if threads == 1 { 1.1 } else { f64::INFINITY };
    assert!(
        ratio > 0.9 && ratio < most,
        "{what}, {threads} threads: {predicted} bytes predicted, {measured} held, {ratio:.3}"
    );
}

#[test]
fn memory_is_as_predicted() {
    let rng = |byte: u8| SecretRng::from_entropy(&Zeroizing::new([byte; 32]));
    let log_n = 14;
    let mut literal =
        CkksLiteral::from_bits(log_n, &[50, 45, 45, 45, 45, 45, 45, 45, 45], &[50; 3], 45.0).unwrap();
    literal.rlwe.security = Security::InsecureForExperiments;
    let parameters = CkksParameters::new(literal).unwrap();
    let rlwe = parameters.rlwe();
    let secret = SecretKey::sample(rlwe, &mut rng(1)).unwrap();
    let mut generator = KeyGenerator::new(&secret, rng(2));
    let public = generator.public_key();
    let level = parameters.max_level();
    let galois = |k: usize| KeyElement::Galois(rotation_element(log_n, k as i64));
    let spec = |element, level| KeySpec::new(rlwe, element, level, 3, true);
    let elements = (1..40).chain((1..16).map(|k| 40 * k)).map(galois).chain([KeyElement::Relinearization]);
    let specs: Vec<_> = elements.map(|element| spec(element, level)).collect();
    let keys = generator.evaluation_keys(&specs).unwrap();
    let evaluator = Evaluator::new(&parameters, &keys).unwrap();
    let mut encryptor = Encryptor::new(&parameters, &public, rng(3)).unwrap();
    let slots = 1usize << (log_n - 1);
    let values: Vec<Complex64> = (0..slots).map(|k| Complex64::new(1.0 / (1.0 + k as f64), 0.0)).collect();
    let input = encryptor.encrypt(&values, log_n - 1, level).unwrap();
    let limb = 8usize << log_n;

    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let run = |work: &(dyn Fn() + Sync)| {
            // Tables are made at the first run.
            pool.install(work);
            pool.install(|| peak(work))
        };
        let rotations: Vec<i64> = (1..5).collect();
        for count in [1, 4] {
            let layout = spec(galois(1), level).best_layout(rlwe, level, false).unwrap();
            let measured = run(&|| drop(evaluator.rotate_hoisted(&input, &rotations[..count]).unwrap()));
            let predicted = layout.switch_limbs(count, false, threads) * limb;
            require(&format!("{count} rotations"), threads, predicted, measured);
        }
        let relinearization = spec(KeyElement::Relinearization, level);
        let limbs = |level: usize| {
            relinearization.best_layout(rlwe, level, true).unwrap().switch_limbs(1, true, threads)
        };
        let measured = run(&|| drop(evaluator.multiply(&input, &input).unwrap()));
        require("a product", threads, (3 * (level + 1) + limbs(level)) * limb, measured);

        for degree in [3usize, 7, 15, 31] {
            let coefficients = (0..=degree).map(|k| 1.0 / (k + 1) as f64).collect();
            for basis in [Basis::Monomial, Basis::chebyshev(-1.0, 1.0).unwrap()] {
                let plan = PolynomialPlan::new(&Polynomial::new(basis, Clone::clone(&coefficients)).unwrap());
                let measured = run(&|| drop(polynomial::evaluate(&evaluator, &plan, &input, None).unwrap()));
                let predicted = plan.scratch_limbs(level, &limbs) * limb;
                require(&format!("degree {degree}, {basis:?}"), threads, predicted, measured);
            }
        }

        // Few and many baby steps, few and many giant steps. A chain with a single baby step makes some sums at a time.
        let sets: [(Vec<usize>, usize, usize); 6] = [
            (vec![0], 1, 8),
            ((0..40).collect(), 1, 8),
            ((0..16).collect(), 16, 8),
            ((0..40).collect(), 40, 4),
            ((0..200).collect(), 40, 7),
            ((0..32).map(|k| 40 * (k / 2) + k % 2).collect(), 40, 8),
        ];
        for (indices, n1, at) in sets {
            let special = spec(galois(1), level).special;
            let matrix: BTreeMap<usize, Vec<Complex64>> =
                indices.iter().map(|&r| (r, values.iter().map(|v| v + r as f64).collect())).collect();
            for storage in [Storage::Encoded, Storage::Coefficients] {
                let steps = |indices, slots| {
                    let plan = BsgsPlan::new(indices, slots, n1)?;
                    Ok(if n1 == 1 { plan.chained() } else { plan })
                };
                let transform = LinearTransform::with_steps(
                    &parameters,
                    &matrix,
                    log_n - 1,
                    at,
                    &special,
                    storage,
                    steps,
                )
                .unwrap();
                let shape = transform.scratch_shape();
                let layout = spec(galois(1), level).best_layout(rlwe, at, false).unwrap();
                let above = usize::from(at < level);
                let predicted = ScratchShape { above, ..shape }.bytes(log_n, &layout, threads);
                let measured = run(&|| drop(evaluate(&evaluator, &[(&transform, &input)]).unwrap()));
                let what = format!("{} diagonals, {n1} baby steps, {storage:?}", indices.len());
                require(&what, threads, predicted, measured);
            }
        }
    }
}
