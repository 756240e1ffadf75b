"""1. Encrypt, add, decrypt: parameters, the three keys, slots, scale and error.

Run with: python examples/1_encrypt.py
"""

import keywright as kw
import numpy as np


def main() -> None:
    """Add two encrypted vectors and compare the error with its bound."""
    # A parameter set fixes the ring degree N, the primes and the scale. A vector has up to N/2 slots.
    parameters = kw.Parameters.preset("N13_QP214_S38")
    print(parameters)

    # The secret stays with the owner of the data; everybody may encrypt with the public key.
    secret = kw.SecretKey.generate(parameters)
    public = kw.KeyGenerator(secret).public_key()

    rng = np.random.default_rng(1)
    a, b = rng.uniform(-1, 1, (2, parameters.max_slots))
    encryptor = kw.Encryptor(public)
    encrypted_a, encrypted_b = encryptor.encrypt(a), encryptor.encrypt(b)
    print(encrypted_a)

    # Sums need no keys at all.
    evaluator = kw.Evaluator(parameters)
    total = evaluator.add(evaluator.sub(encrypted_a, encrypted_b), 0.5)

    error = np.abs(kw.Decryptor(secret).decrypt(total) - (a - b + 0.5)).max()
    print(f"largest error {error:.1e}, bound {total.error_bound:.1e}")
    if error > total.error_bound:
        raise AssertionError("the error is above its bound")


if __name__ == "__main__":
    main()
