"""SEAL from the TenSEAL wheel, through its `sealapi`: one special prime, one prime per digit, one thread."""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import Any

import numpy as np
import tenseal.sealapi as seal
from harness.programs.peer import HOISTED_ROTATIONS, Bench, ParameterSet, leave, parse_options

MAX_LOG_N = 15
"""Largest ring degree that SEAL 4 accepts with its security check on."""

LEFT_BY_ONE = 3
"""Galois element of the rotation by one: SEAL's slots are ordered by powers of 3."""


def main() -> None:
    """Measure one parameter set."""
    options = parse_options("tenseal")
    p = options.parameters
    if p.log_n > MAX_LOG_N:
        raise SystemExit(f"SEAL has rings up to 2^{MAX_LOG_N}; this set has 2^{p.log_n}")
    if options.alpha != 1 or options.threads != 1:
        raise SystemExit("SEAL has one prime per digit and one thread per operation: --alpha 1 --threads 1")
    bench = Bench("tenseal", version("tenseal"), "seal", 1, options)
    scheme = Scheme(p)
    measure_keys(bench, scheme, p.max_level)
    for level in p.levels:
        measure_level(bench, scheme, level)
    leave()


class Scheme:
    """SEAL's objects for one parameter set, and the values that every ciphertext holds."""

    def __init__(self, p: ParameterSet) -> None:
        literal = seal.EncryptionParameters(seal.SCHEME_TYPE.CKKS)
        literal.set_poly_modulus_degree(1 << p.log_n)
        literal.set_coeff_modulus(seal.CoeffModulus.Create(1 << p.log_n, [*p.log_q, p.log_p]))
        self.context = seal.SEALContext(literal, True, seal.SEC_LEVEL_TYPE.TC128)
        self.keys = seal.KeyGenerator(self.context)
        public = seal.PublicKey()
        self.keys.create_public_key(public)
        self.encryptor = seal.Encryptor(self.context, public)
        self.decryptor = seal.Decryptor(self.context, self.keys.secret_key())
        self.encoder = seal.CKKSEncoder(self.context)
        self.evaluator = seal.Evaluator(self.context)
        self.relinearization = seal.RelinKeys()
        self.keys.create_relin_keys(self.relinearization)
        self.galois = seal.GaloisKeys()
        self.scale = 2.0**p.log_scale
        self.values = np.random.default_rng(1).uniform(-1, 1, p.slots)
        self.sent = self.values.tolist()
        self.levels = self.identifiers()

    def identifiers(self) -> dict[int, Any]:
        """SEAL names a level by a hash of its parameters: level -> hash."""
        identifiers = {}
        data = self.context.first_context_data()
        while data is not None:
            identifiers[int(data.chain_index())] = data.parms_id()
            data = data.next_context_data()
        return identifiers

    def encode(self, level: int) -> Any:
        """The values as a plaintext of one level."""
        plaintext = seal.Plaintext()
        self.encoder.encode(self.sent, self.levels[level], self.scale, plaintext)
        return plaintext

    def encrypt(self, level: int) -> Any:
        """Encode and encrypt with the public key."""
        ciphertext = seal.Ciphertext()
        self.encryptor.encrypt(self.encode(level), ciphertext)
        return ciphertext

    def decrypt(self, ciphertext: Any) -> Any:
        """Decrypt and decode to a list."""
        plaintext = seal.Plaintext()
        self.decryptor.decrypt(ciphertext, plaintext)
        return self.encoder.decode_double(plaintext)

    def rotate(self, ciphertext: Any, by: int) -> Any:
        """Rotate to the left."""
        rotated = seal.Ciphertext()
        self.evaluator.rotate_vector(ciphertext, by, self.galois, rotated)
        return rotated

    def multiply(self, x: Any, y: Any) -> Any:
        """Multiply and relinearize, without rescaling."""
        product = seal.Ciphertext()
        self.evaluator.multiply(x, y, product)
        self.evaluator.relinearize_inplace(product, self.relinearization)
        return product

    def rescale(self, ciphertext: Any) -> Any:
        """Divide by the last prime."""
        rescaled = seal.Ciphertext()
        self.evaluator.rescale_to_next(ciphertext, rescaled)
        return rescaled

    def error(self, ciphertext: Any, expected: Any) -> float:
        """Largest slot error of a ciphertext."""
        return float(np.abs(np.array(self.decrypt(ciphertext)) - expected).max())


def measure_keys(bench: Bench, scheme: Scheme, top: int) -> None:
    """Make and time the key of rotation 1, the only one: SEAL has no hoisting."""
    if not any(map(bench.wants, ("keygen", "rotate"))):
        return
    seconds = []
    for _ in HOISTED_ROTATIONS:
        start = time.perf_counter()
        scheme.keys.create_galois_keys([LEFT_BY_ONE], scheme.galois)
        seconds.append(time.perf_counter() - start)
    if bench.wants("keygen"):
        rotated = scheme.rotate(scheme.encrypt(top), 1)
        bench.emit("keygen", top, seconds, scheme.error(rotated, np.roll(scheme.values, -1)), None)


def measure_level(bench: Bench, scheme: Scheme, level: int) -> None:
    """Measure every operation on fresh ciphertexts of one level."""
    values, squares = scheme.values, scheme.values**2
    x, y = scheme.encrypt(level), scheme.encrypt(level)
    decode = scheme.encoder.decode_double
    bench.measure(
        "encode",
        level,
        lambda: scheme.encode(level),
        lambda plain: float(np.abs(np.array(decode(plain)) - values).max()),
    )
    bench.measure("encrypt", level, lambda: scheme.encrypt(level), lambda c: scheme.error(c, values))
    bench.measure(
        "decrypt",
        level,
        lambda: scheme.decrypt(x),
        lambda slots: float(np.abs(np.array(slots) - values).max()),
    )
    bench.measure(
        "rotate", level, lambda: scheme.rotate(x, 1), lambda c: scheme.error(c, np.roll(values, -1))
    )
    bench.measure(
        "multiply",
        level,
        lambda: scheme.rescale(scheme.multiply(x, y)),
        lambda c: scheme.error(c, squares),
    )
    product = scheme.multiply(x, y)
    bench.measure("multiply_relin", level, lambda: scheme.multiply(x, y), lambda c: scheme.error(c, squares))
    bench.measure("rescale", level, lambda: scheme.rescale(product), lambda c: scheme.error(c, squares))


if __name__ == "__main__":
    main()
