"""NOT SECURE: a published form of cached encryption and the attack that breaks it.

`ChemEncryptor` is Protocol 1 of Zhao, "Chem: Efficient Secure Aggregation with Cached Homomorphic Encryption
in Federated Machine Learning Systems". `ChemDistinguisher` distinguishes its ciphertexts without any key.
docs/explanation/cached-encryption.md explains why. Use `keywright.EncryptionPool` instead.

Wheels do not have the scheme. The development build has it.

Raises:
    ImportError: the extension was built without the feature `insecure`.
"""

try:
    from keywright._core import ChemDistinguisher, ChemEncryptor
except ImportError as error:
    raise ImportError(
        "this build of Keywright lacks the insecure scheme, as all wheels do; run `make build`, or "
        "`maturin develop --release --features insecure`, in its source tree"
    ) from error

__all__ = ["ChemDistinguisher", "ChemEncryptor"]
