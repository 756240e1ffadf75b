//! `keywright._core`: the Rust engine under the names of the Python package. An adapter: one file per class, without
//! logic.
//!
//! Objects are immutable or guarded by a lock, so any thread can use them. Computations release the interpreter lock
//! and run on the threads of [`threads`].
#![forbid(unsafe_code)]

mod array;
mod bench;
mod bfv;
#[cfg(feature = "insecure")]
mod chem;
mod ciphertext;
mod circuits;
mod ckks;
mod errors;
mod evaluator;
mod getters;
mod inspect;
mod keys;
mod memory;
mod operand;
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
    #[pymodule_export]
    use crate::bench::{bench, bench_bootstrap, bench_presets, bench_sets, bench_works};
    #[pymodule_export]
    use crate::bfv::ciphertext::PyBfvCiphertext;
    #[pymodule_export]
    use crate::bfv::decryptor::PyBfvDecryptor;
    #[pymodule_export]
    use crate::bfv::encryptor::PyBfvEncryptor;
    #[pymodule_export]
    use crate::bfv::evaluator::PyBfvEvaluator;
    #[pymodule_export]
    use crate::bfv::seeded_ciphertext::PyBfvSeededCiphertext;
    #[cfg(feature = "insecure")]
    #[pymodule_export]
    use crate::chem::{PyChemDistinguisher, PyChemEncryptor};
    #[pymodule_export]
    use crate::circuits::arithmetic::kernel_counts;
    #[pymodule_export]
    use crate::circuits::bootstrapper::PyBootstrapper;
    #[pymodule_export]
    use crate::circuits::bootstrapper_plan::PyBootstrapperPlan;
    #[pymodule_export]
    use crate::circuits::error_model::PyErrorModel;
    #[pymodule_export]
    use crate::circuits::linear_transform::PyLinearTransform;
    #[pymodule_export]
    use crate::circuits::polynomial::{polynomial_arithmetic, polynomial_depth, polynomial_relinearizations};
    #[pymodule_export]
    use crate::ckks::ciphertext::PyCiphertext;
    #[pymodule_export]
    use crate::ckks::decryptor::PyDecryptor;
    #[pymodule_export]
    use crate::ckks::encryptor::PyEncryptor;
    #[pymodule_export]
    use crate::ckks::evaluator::PyEvaluator;
    #[pymodule_export]
    use crate::ckks::flooding::PyFlooding;
    #[pymodule_export]
    use crate::ckks::seeded_ciphertext::PySeededCiphertext;
    #[pymodule_export]
    use crate::inspect::{contains_secret, inspect};
    #[pymodule_export]
    use crate::keys::derivation::PyDerivation;
    #[pymodule_export]
    use crate::keys::derivation_tree::PyDerivationTree;
    #[pymodule_export]
    use crate::keys::evaluation_keys::PyEvaluationKeys;
    #[pymodule_export]
    use crate::keys::generator::PyKeyGenerator;
    #[pymodule_export]
    use crate::keys::master_keys::{PyMasterKeys, master_key_bytes, maximum_log_qp};
    #[pymodule_export]
    use crate::keys::public_key::PyPublicKey;
    #[pymodule_export]
    use crate::keys::secret_key::PySecretKey;
    #[pymodule_export]
    use crate::keys::set_head::{key_set_head, read_key_set_head};
    #[pymodule_export]
    use crate::keys::spec::PyKeySpec;
    #[pymodule_export]
    use crate::keys::switching_key::PySwitchingKey;
    #[pymodule_export]
    use crate::keys::widths::PyPrimeWidths;
    #[pymodule_export]
    use crate::memory::{
        memory_use, polynomial_scratch, recycled_bytes, reset_memory_peak, transform_scratch, trim_memory,
    };
    #[pymodule_export]
    use crate::parameters::bfv::PyBfvParameters;
    #[pymodule_export]
    use crate::parameters::ckks::PyParameters;
    #[pymodule_export]
    use crate::pools::encryption_pool::PyEncryptionPool;
    #[pymodule_export]
    use crate::search::answer::PySearchAnswer;
    #[pymodule_export]
    use crate::search::index::PySearchIndex;
    #[pymodule_export]
    use crate::sums::encrypted::{PyEncryptedSum, PyEncryptedUpdate};
    #[pymodule_export]
    use crate::sums::key::PySumKey;
    #[pymodule_export]
    use crate::sums::parameters::PySumParameters;
    #[pymodule_export]
    use crate::sums::threshold_key::PyThresholdKey;
    #[pymodule_export]
    use crate::sums::threshold_parameters::PyThresholdParameters;
    #[pymodule_export]
    use crate::sums::threshold_party::{PyThresholdParty, PyThresholdShare};
    #[pymodule_export]
    use crate::thin_client::client::PyClient;
    #[pymodule_export]
    use crate::thin_client::encryptor::PyClientEncryptor;
    #[pymodule_export]
    use crate::thin_client::key_stream::PyClientKeyStream;
    #[pymodule_export]
    use crate::thin_client::parameters::PyClientParameters;
    #[pymodule_export]
    use crate::threads::{set_threads, threads};

    #[pymodule_init]
    fn init(_module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        keywright_ring::return_large_blocks();
        // Without a reserve the first computation is refused; the process needs none before that.
        let _ = keywright_ring::Reserve::keep();
        Ok(())
    }

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python expects")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    const HEAD_BYTES: usize = crate::inspect::HEAD_BYTES;

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
