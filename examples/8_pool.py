"""8. Encryption in idle time: once the value is known, the encryption is a single addition.

Run with: python examples/8_pool.py
"""

import time

import keywright as kw
import numpy as np

VALUES = 200


def main() -> None:
    """Fill a pool, encrypt one value per ciphertext, directly and with the pool, and check both."""
    parameters = kw.Parameters.from_bits(13, [60, 40, 40], [60], 40)
    secret = kw.SecretKey.generate(parameters)
    public = kw.KeyGenerator(secret).public_key()
    values = np.random.default_rng(1).uniform(-1, 1, VALUES)

    encryptor = kw.Encryptor(public)
    start = time.perf_counter()
    direct = [encryptor.encrypt([value], 1) for value in values]
    direct_seconds = time.perf_counter() - start

    # Filled by hand here; with threads=1, the default, it fills itself in idle time.
    with kw.EncryptionPool(public, VALUES, threads=0, when_empty="error") as pool:
        start = time.perf_counter()
        pool.fill()
        ahead = time.perf_counter() - start
        start = time.perf_counter()
        pooled = pool.encrypt_scalars(values)
        online = time.perf_counter() - start
        metrics = pool.metrics

    each = 1e6 / VALUES
    print(f"a value directly: {direct_seconds * each:.0f} us")
    print(
        f"a value with the pool: {ahead * each:.0f} us ahead of time, {online * each:.1f} us when it is known"
    )
    print(f"entries made {metrics['made']}, taken {metrics['taken']}, without waiting {metrics['hits']}")

    # Every entry was used once; the next value would have to wait.
    decryptor = kw.Decryptor(secret)
    for ciphertexts in (direct, pooled):
        for ciphertext, value in zip(ciphertexts, values, strict=True):
            if abs(decryptor.decrypt(ciphertext)[0] - value) > ciphertext.error_bound:
                raise AssertionError(f"{value} is not within its error bound")
    if metrics["hits"] != VALUES or metrics["fill"] != 0:
        raise AssertionError("the pool did not serve every value from memory")


if __name__ == "__main__":
    main()
