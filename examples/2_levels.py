"""2. Levels and scales: what products cost, and how operands of different levels meet.

Run with: python examples/2_levels.py
"""

import keywright as kw
import numpy as np


def main() -> None:
    """Evaluate x^4 - 2 x + 1 step by step, and with operators."""
    parameters = kw.Parameters.preset("N13_QP214_S38")
    secret = kw.SecretKey.generate(parameters)
    generator = kw.KeyGenerator(secret)
    decryptor = kw.Decryptor(secret)
    # Relinearization takes products back to two polynomials; a set has its key unless it is declined.
    evaluator = kw.Evaluator(parameters, generator.evaluation_keys())

    x = np.linspace(-1, 1, 16)
    fresh = kw.Encryptor(generator.public_key()).encrypt(x, slots=16)

    # A product has the square of the scale; rescaling divides it by the last prime, which costs a level.
    square = evaluator.square(fresh)
    fourth = evaluator.square(square)
    for name, power in (("x", fresh), ("x^2", square), ("x^4", fourth)):
        print(f"{name:4} level {power.level}  scale 2^{power.log_scale:.6f}  {power.precision_bits:.1f} bits")

    # The primes are not powers of two, so the scales of x and x^4 differ; adding them would be wrong.
    try:
        evaluator.add(fourth, evaluator.multiply(fresh, -2))
    except kw.errors.ScaleError as error:
        print(f"refused: {error}")
    # One level above the other operand, the scale can be set exactly.
    linear = evaluator.set_scale(evaluator.drop_to_level(fresh, fourth.level + 1), fourth.scale)
    by_hand = evaluator.add(evaluator.add(fourth, evaluator.multiply(linear, -2)), 1)

    # Operators do the same.
    value = evaluator(fresh)
    by_operators = (value**4 - 2 * value + 1).ciphertext

    expected = x**4 - 2 * x + 1
    for result in (by_hand, by_operators):
        largest = np.abs(decryptor.decrypt(result) - expected).max()
        print(f"level {result.level}, largest error {largest:.1e}, bound {result.error_bound:.1e}")
        if largest > result.error_bound:
            raise AssertionError("the error is above its bound")

    bottom = evaluator.square(fourth)
    try:
        evaluator.multiply(bottom, 0.5)
    except kw.errors.LevelError as error:
        print(f"refused: {error}")


if __name__ == "__main__":
    main()
