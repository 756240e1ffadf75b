"""Rotates with SEAL, through TenSEAL's binding of SEAL's own API. A line in or out is a JSON object.

The first request has `log_n`, `bits` of the primes, the special one last, and `log_scale`. SEAL is told not
to check the security, because its table ends at 2^15. It has one prime to a digit and one special prime.
Later requests have a number of `runs`. The answer has the mean processor seconds of a rotation by one, and
the error of the last result.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from harness.measurement.clock import timed
from tenseal import sealapi as seal


class Rotations:
    """Rotations of one ciphertext."""

    def __init__(self, log_n: int, bits: list[int], log_scale: float) -> None:
        n = 1 << log_n
        literal = seal.EncryptionParameters(seal.SCHEME_TYPE.CKKS)
        literal.set_poly_modulus_degree(n)
        literal.set_coeff_modulus(seal.CoeffModulus.Create(n, bits))
        context = seal.SEALContext(literal, True, seal.SEC_LEVEL_TYPE.NONE)
        if not context.parameters_set():
            raise SystemExit(f"SEAL refuses N = 2^{log_n} with primes of {bits} bits")
        generator = seal.KeyGenerator(context)
        public, self.keys = seal.PublicKey(), seal.GaloisKeys()
        generator.create_public_key(public)
        # The Galois element of a rotation by one is SEAL's generator, 3.
        generator.create_galois_keys([3], self.keys)
        self.encoder, self.evaluator = seal.CKKSEncoder(context), seal.Evaluator(context)
        self.decryptor = seal.Decryptor(context, generator.secret_key())
        self.values = np.linspace(-1, 1, n // 2)
        plain, self.input = seal.Plaintext(), seal.Ciphertext()
        self.encoder.encode(self.values.tolist(), 2.0**log_scale, plain)
        seal.Encryptor(context, public).encrypt(plain, self.input)

    def run(self, runs: int) -> dict[str, Any]:
        """Rotate so often, after once untimed."""
        result, plain = seal.Ciphertext(), seal.Plaintext()
        self.evaluator.rotate_vector(self.input, 1, self.keys, result)
        seconds = [
            timed(self.evaluator.rotate_vector, self.input, 1, self.keys, result)[1].cpu for _ in range(runs)
        ]
        self.decryptor.decrypt(result, plain)
        slots = np.array(self.encoder.decode_double(plain))
        error = float(np.abs(slots - np.roll(self.values, -1)).max())
        return {"cpu": float(np.mean(seconds)), "error": error}


def main() -> None:
    """Serve until the input ends."""
    rotations: Rotations | None = None
    for line in sys.stdin:
        request = json.loads(line)
        if rotations is None:
            rotations = Rotations(**request)
            print(json.dumps({}), flush=True)
        else:
            print(json.dumps(rotations.run(request["runs"])), flush=True)


if __name__ == "__main__":
    main()
