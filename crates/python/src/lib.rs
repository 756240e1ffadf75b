//! `keywright._core`: the Rust engine under the names of the Python package. An adapter: one file per class, without
//! logic.
//!
//! Objects are immutable or guarded by a lock, so any thread can use them. Computations release the interpreter lock
//! and run on the threads of [`threads`].
#![forbid(unsafe_code)]

mod arguments;
mod bench;
mod bfv;
#[cfg(feature = "insecure")]
mod chem;
mod circuits;
mod ckks;
mod classes;
mod errors;
mod inspect;
mod keys;
mod memory;
mod parameters;
mod pools;
mod randomness;
mod search;
mod stored;
mod sums;
mod thin_client;
mod threads;

/// Running out of memory ends the work, not the process.
#[global_allocator]
static ALLOCATOR: keywright_ring::Reserve = keywright_ring::Reserve;

/// Keywright's compiled engine. Import it as `keywright`.
#[pyo3::pymodule(gil_used = false)]
mod _core {
    #[cfg(feature = "insecure")]
    #[pymodule_export]
    use crate::chem::{PyChemDistinguisher, PyChemEncryptor};
    #[pymodule_export]
    use crate::{
        bench::{bench, bench_bootstrap, bench_checked, bench_presets, bench_sets, bench_works},
        bfv::{
            ciphertext::PyBfvCiphertext, decryptor::PyBfvDecryptor, encryptor::PyBfvEncryptor,
            evaluator::PyBfvEvaluator, seeded_ciphertext::PyBfvSeededCiphertext,
        },
        circuits::{
            arithmetic::kernel_counts,
            bootstrapper::PyBootstrapper,
            bootstrapper_plan::PyBootstrapperPlan,
            error_model::PyErrorModel,
            linear_transform::PyLinearTransform,
            polynomial::{polynomial_arithmetic, polynomial_depth, polynomial_relinearizations},
        },
        ckks::{
            ciphertext::PyCiphertext, decryptor::PyDecryptor, encryptor::PyEncryptor, evaluator::PyEvaluator,
            flooding::PyFlooding, seeded_ciphertext::PySeededCiphertext,
        },
        inspect::{contains_secret, inspect},
        keys::{
            derivations::{derivation::PyDerivation, tree::PyDerivationTree},
            descriptions::{spec::PyKeySpec, widths::PyPrimeWidths},
            evaluation_keys::PyEvaluationKeys,
            generator::PyKeyGenerator,
            master_keys::{PyMasterKeys, master_key_bytes, maximum_log_qp},
            public_key::PyPublicKey,
            secret_key::PySecretKey,
            set_head::{key_set_head, read_key_set_head},
            switching_key::PySwitchingKey,
        },
        memory::{
            keep_large_blocks, memory_use, polynomial_scratch, recycled_bytes, reset_memory_peak,
            transform_scratch, trim_memory,
        },
        parameters::{bfv::PyBfvParameters, ckks::PyParameters},
        pools::encryption_pool::PyEncryptionPool,
        search::{answer::PySearchAnswer, encrypted::PyEncryptedSearchIndex, index::PySearchIndex},
        sums::{
            encrypted::{PyEncryptedSum, PyEncryptedUpdate},
            key::PySumKey,
            parameters::PySumParameters,
            threshold_key::PyThresholdKey,
            threshold_parameters::PyThresholdParameters,
            threshold_party::{PyThresholdParty, PyThresholdShare},
        },
        thin_client::{
            client::PyClient, encryptor::PyClientEncryptor, key_stream::PyClientKeyStream,
            parameters::PyClientParameters,
        },
        threads::{set_threads, threads},
    };

    #[pymodule_init]
    fn init(_module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        keywright_ring::keep_large_blocks(false);
        // Without a reserve the first computation is refused; the process needs none before that.
        let _ = keywright_ring::Reserve::keep();
        Ok(())
    }

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python expects")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    const HEAD_BYTES: usize = keywright_wire::HEAD_BYTES;

    #[pymodule_export]
    const ERROR_DEVIATION: f64 = keywright_ring::sampling::SIGMA;

    /// Largest number of derivations to a key, its default, and the largest number of extra primes of master keys.
    #[pymodule_export]
    const MAX_DERIVATION_HOPS: usize = keywright_rlwe::derive::MAX_HOPS;

    #[pymodule_export]
    const DEFAULT_DERIVATION_HOPS: usize = keywright_rlwe::derive::DEFAULT_HOPS;

    #[pymodule_export]
    const MAX_EXTRA_PRIMES: usize = keywright_rlwe::derive::MAX_EXTRA_PRIMES;

    #[pymodule_export]
    const RANK_WEIGHTS: [usize; 3] = keywright_rlwe::switch::RANK_WEIGHTS;

    #[pymodule_export]
    const SCALE_TOLERANCE: f64 = keywright_ckks::SCALE_TOLERANCE;
}
