//! `keywright._core`: the Rust engine under the names of the Python package. An adapter: one file per class, no logic.
//!
//! Objects are immutable or guarded by a lock, so they can be used from any thread. The interpreter lock is released
//! while anything is computed, which runs on the pool of [`pool`].
#![forbid(unsafe_code)]

mod arithmetic;
mod array;
mod bench;
mod bfv_ciphertext;
mod bfv_decryptor;
mod bfv_encryptor;
mod bfv_evaluator;
mod bfv_operand;
mod bfv_parameters;
mod bfv_seeded_ciphertext;
mod bootstrapper;
mod bootstrapper_plan;
mod chem;
mod ciphertext;
mod client;
mod client_keys;
mod client_parameters;
mod decryptor;
mod encryption_pool;
mod encryptor;
mod errors;
mod evaluation_keys;
mod evaluator;
mod inspect;
mod key_generator;
mod key_parameters;
mod key_set_head;
mod key_spec;
mod linear_transform;
mod master_keys;
mod operand;
mod parameters;
mod polynomial_schedule;
mod pool;
mod public_key;
mod randomness;
mod secret_key;
mod seeded_ciphertext;
mod stored;
mod sums;
mod switching_key;
mod threshold;

/// Keywright's compiled engine. Import it as `keywright`.
#[pyo3::pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use crate::arithmetic::kernel_counts;
    #[pymodule_export]
    use crate::bench::{bench, bench_bootstrap, bench_presets, bench_sets, bench_works};
    #[pymodule_export]
    use crate::bfv_ciphertext::PyBfvCiphertext;
    #[pymodule_export]
    use crate::bfv_decryptor::PyBfvDecryptor;
    #[pymodule_export]
    use crate::bfv_encryptor::PyBfvEncryptor;
    #[pymodule_export]
    use crate::bfv_evaluator::PyBfvEvaluator;
    #[pymodule_export]
    use crate::bfv_parameters::{PyBfvParameters, bfv_presets};
    #[pymodule_export]
    use crate::bfv_seeded_ciphertext::PyBfvSeededCiphertext;
    #[pymodule_export]
    use crate::bootstrapper::PyBootstrapper;
    #[pymodule_export]
    use crate::bootstrapper_plan::{PyBootstrapperPlan, bootstrap_presets};
    #[pymodule_export]
    use crate::chem::{PyChemDistinguisher, PyChemEncryptor};
    #[pymodule_export]
    use crate::ciphertext::PyCiphertext;
    #[pymodule_export]
    use crate::client::{PyClient, PyClientEncryptor};
    #[pymodule_export]
    use crate::client_keys::PyClientKeyStream;
    #[pymodule_export]
    use crate::client_parameters::PyClientParameters;
    #[pymodule_export]
    use crate::decryptor::PyDecryptor;
    #[pymodule_export]
    use crate::encryption_pool::PyEncryptionPool;
    #[pymodule_export]
    use crate::encryptor::PyEncryptor;
    #[pymodule_export]
    use crate::evaluation_keys::PyEvaluationKeys;
    #[pymodule_export]
    use crate::evaluator::PyEvaluator;
    #[pymodule_export]
    use crate::inspect::inspect;
    #[pymodule_export]
    use crate::key_generator::PyKeyGenerator;
    #[pymodule_export]
    use crate::key_set_head::{key_set_head, read_key_set_head};
    #[pymodule_export]
    use crate::key_spec::PyKeySpec;
    #[pymodule_export]
    use crate::linear_transform::PyLinearTransform;
    #[pymodule_export]
    use crate::master_keys::{PyDerivation, PyMasterKeys, derivation_tree, master_key_bytes, maximum_log_qp};
    #[pymodule_export]
    use crate::parameters::{PyParameters, presets};
    #[pymodule_export]
    use crate::polynomial_schedule::{polynomial_arithmetic, polynomial_relinearizations};
    #[pymodule_export]
    use crate::pool::{set_threads, threads};
    #[pymodule_export]
    use crate::public_key::PyPublicKey;
    #[pymodule_export]
    use crate::secret_key::PySecretKey;
    #[pymodule_export]
    use crate::seeded_ciphertext::PySeededCiphertext;
    #[pymodule_export]
    use crate::sums::{PyEncryptedSum, PyEncryptedUpdate, PySumKey, PySumParameters};
    #[pymodule_export]
    use crate::switching_key::PySwitchingKey;
    #[pymodule_export]
    use crate::threshold::{PyThresholdKey, PyThresholdParameters, PyThresholdParty, PyThresholdShare};

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python expects")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
