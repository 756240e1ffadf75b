"""5. Keys as objects: level, digits, special primes, seeds, truncation, security of each key.

Run with: python examples/5_keys.py
"""

import keywright as kw
import numpy as np


def main() -> None:
    """Make keys for one rotation in several ways and use each."""
    parameters = kw.Parameters.preset("N15_QP830_S45")
    secret = kw.SecretKey.generate(parameters)
    generator = kw.KeyGenerator(secret)
    print(parameters)

    # Ciphertext primes are 0 .. L, special primes follow. At level 4, primes 5 .. 14 are free.
    dropped = [5, 6, 7, 8, 9]
    specs = {
        "top level": kw.KeySpec.rotation(parameters, 1),
        "top level, not seeded": kw.KeySpec.rotation(parameters, 1, seeded=False),
        "top level, alpha 1": kw.KeySpec.rotation(parameters, 1, alpha=1),
        "level 4": kw.KeySpec.rotation(parameters, 1, level=4),
        "level 4, dropped primes": kw.KeySpec.rotation(
            parameters, 1, level=4, alpha=5, special=[*dropped, parameters.max_level + 1]
        ),
    }

    values = np.random.default_rng(5).uniform(-1, 1, 1024)
    encrypted = kw.Encryptor(generator.public_key()).encrypt(values, slots=1024, level=4)
    decryptor = kw.Decryptor(secret)
    for name, spec in specs.items():
        keys = kw.EvaluationKeys(parameters)
        keys.add(generator.switching_key(spec))
        rotated = kw.Evaluator(parameters, keys).rotate(encrypted, 1)
        largest = np.abs(decryptor.decrypt(rotated) - np.roll(values, -1)).max()
        size = f"{len(spec.digits):2} digits {spec.bytes / 1e6:6.2f} MB"
        print(f"{name:24} {size}, largest error {largest:.1e}, bound {rotated.error_bound:.1e}")
        if largest > rotated.error_bound:
            raise AssertionError(f"{name}: the error is above its bound")

    # A key of the top level holds the key of every level below it.
    cut = generator.switching_key(specs["top level"]).truncate(4)
    print(f"truncated to level 4: {cut.bytes / 1e6:.2f} MB")

    # Security is a property of each key: this ring allows 868 bits in all, however they are spent.
    wide = kw.Parameters.from_bits(log_n=15, q_bits=[50] + [45] * 15, p_bits=[50] * 5, log_scale=45)
    try:
        kw.KeySpec.relinearization(wide, alpha=5, special=[16, 17, 18, 19, 20])
    except kw.errors.SecurityError as error:
        print(f"refused: {error}")
    print("fits:", kw.KeySpec.relinearization(wide, alpha=5, level=12, special=[16, 17, 18, 19, 20]))


if __name__ == "__main__":
    main()
