//! The suite. Every function takes a back end. On a mismatch it panics and names the kernel, the prime and the degree.

mod conversion;
mod halves;
mod inner_product;
mod permutation;
mod planes;
mod pointwise;
mod randomness;
mod transform;

pub use conversion::{conversion_equals_portable, conversion_is_exact};
pub use halves::{halves_are_joined, halves_are_separated};
pub use inner_product::{
    inner_product_equals_portable, inner_product_is_the_sum, inner_products_are_the_sums,
};
pub use permutation::permutation_is_the_automorphism;
pub use planes::{planes_are_added, sums_are_folded};
pub use pointwise::pointwise_is_modular_arithmetic;
pub use randomness::expander::expansion_equals_portable;
pub use randomness::sampling::{key_stream_equals_portable, samples_equal_portable};
pub use transform::{subring_transform_is_the_rings, transform_equals_portable, transform_is_evaluation};

use keywright_ring::{Backend, Ring, backend};

/// The reference back end.
fn portable() -> &'static dyn Backend {
    #[expect(clippy::unwrap_used, reason = "the portable back end exists everywhere")]
    backend::by_name("portable").unwrap()
}

fn ring(log_n: u32, primes: &[u64], backend: &'static dyn Backend) -> Ring {
    #[expect(clippy::unwrap_used, reason = "the primes of the suite are distinct and suit the degree")]
    Ring::new(log_n, primes, backend).unwrap()
}

/// Compares limbs and names the first index that differs.
#[track_caller]
fn assert_limb(seen: &[u64], expected: &[u64], what: impl FnOnce() -> String) {
    assert_eq!(seen.len(), expected.len());
    if let Some(i) = (0..seen.len()).find(|&i| seen[i] != expected[i]) {
        #[expect(clippy::panic, reason = "this is how a conformance test fails")]
        {
            panic!("{}: entry {i} is {}, expected {}", what(), seen[i], expected[i]);
        }
    }
}

/// One test per kernel family for the back end of the given name. If the CPU lacks it, the tests pass and print that.
///
/// ```ignore
/// keywright_ring_testing::conformance_suite!(portable);
/// ```
#[macro_export]
macro_rules! conformance_suite {
    ($name:ident) => {
        $crate::conformance_suite!($name:
            transform_is_evaluation,
            transform_equals_portable,
            subring_transform_is_the_rings,
            pointwise_is_modular_arithmetic,
            permutation_is_the_automorphism,
            conversion_is_exact,
            conversion_equals_portable,
            inner_product_is_the_sum,
            inner_products_are_the_sums,
            inner_product_equals_portable,
            halves_are_joined,
            halves_are_separated,
            expansion_equals_portable,
            key_stream_equals_portable,
            samples_equal_portable,
            planes_are_added,
            sums_are_folded,
        );
    };
    ($name:ident: $($test:ident,)*) => {
        mod $name {
            $(
                #[test]
                fn $test() {
                    match ::keywright_ring::backend::by_name(stringify!($name)) {
                        Ok(backend) => $crate::conformance::$test(backend),
                        Err(error) => eprintln!("NOT RUN: {error}"),
                    }
                }
            )*
        }
    };
}
