"""NOT SECURE: a published form of cached encryption and the attack that breaks it.

`ChemEncryptor` is Protocol 1 of Zhao, "Chem: Efficient Secure Aggregation with Cached Homomorphic Encryption
in Federated Machine Learning Systems". `ChemDistinguisher` tells its ciphertexts apart without any key.
docs/cached-encryption.md says why. Use `keywright.EncryptionPool`.
"""

from keywright._core import ChemDistinguisher, ChemEncryptor

__all__ = ["ChemDistinguisher", "ChemEncryptor"]
