"""3. Rotations: hoisting, inner sums, complex slots, and the message for a missing key.

Run with: python examples/3_rotations.py
"""

import keywright as kw
import numpy as np


def main() -> None:
    """Rotate, sum and conjugate encrypted vectors."""
    parameters = kw.Parameters.preset("N13_QP214_S38")
    secret = kw.SecretKey.generate(parameters)
    generator = kw.KeyGenerator(secret)
    decryptor = kw.Decryptor(secret)
    # One Galois key for each rotation, another for the conjugation.
    keys = generator.evaluation_keys(rotations=[1, 2, 4, 8], conjugation=True, relinearization=False)
    evaluator = kw.Evaluator(parameters, keys)

    # A vector of 16 values is packed sparsely: rotations act modulo 16.
    rng = np.random.default_rng(3)
    z = rng.normal(size=16) + 1j * rng.normal(size=16)
    encrypted = kw.Encryptor(generator.public_key()).encrypt(z, slots=16)

    def check(name: str, result: kw.Ciphertext, expected: np.ndarray) -> None:
        # The bound is on each value; of a complex one, on its absolute value.
        error = np.abs(decryptor.decrypt_complex(result) - expected).max()
        print(f"{name:15} largest error {error:.1e}, bound {result.error_bound:.1e}")
        if error > result.error_bound:
            raise AssertionError(f"{name}: the error is above its bound")

    check("rotated by 2", evaluator.rotate(encrypted, 2), np.roll(z, -2))
    # Rotations of one ciphertext share the expensive half of the work.
    for steps, rotated in zip([1, 4, 8], evaluator.rotate_hoisted(encrypted, [1, 4, 8]), strict=True):
        check(f"hoisted, by {steps}", rotated, np.roll(z, -steps))
    check("sum", evaluator.inner_sum(encrypted), np.full(16, z.sum()))
    check("conjugate", evaluator.conjugate(encrypted), z.conj())
    check("times i", evaluator.multiply_by_i(encrypted), 1j * z)

    try:
        evaluator.rotate(encrypted, 3)
    except kw.errors.MissingKeyError as error:
        print(f"refused: {error}")


if __name__ == "__main__":
    main()
