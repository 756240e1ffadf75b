"""Evaluates polynomials with a back end that counts, and prints the work of their key switches.

`test_polynomials` runs this in a separate process, with `KEYWRIGHT_BACKEND=counted`: a process has one back
end.
"""

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial

import keywright as kw
import numpy as np
from keywright._core import kernel_counts
from keywright.program.operands.polynomials import Basis, PolynomialSpec

LEVELS = 6  # of the polynomials: those of degree 63


def polynomials() -> Iterator[PolynomialSpec]:
    """Yield random polynomials of degrees 1 to 63 in both bases, the same with every other coefficient zero,
    and some with a zero at the end."""
    rng = np.random.default_rng(16)
    bases: tuple[Basis, ...] = ("monomial", "chebyshev")
    for degree in range(1, 64):
        for basis in bases:
            coefficients = rng.uniform(-1, 1, degree + 1) / (degree + 1)
            yield PolynomialSpec(coefficients, basis)
            halved = coefficients.copy()
            halved[(degree + 1) % 2 :: 2] = 0
            yield PolynomialSpec(halved, basis)
            if degree % 3 == 0:
                yield PolynomialSpec(np.append(coefficients[:-1], 0.0), basis)


def rows(work: Callable[[], object]) -> int:
    """Words of the products with key rows: only key switches have them."""
    before = sum(kernel_counts()["seeded_products"])
    work()
    return sum(kernel_counts()["seeded_products"]) - before


def main() -> None:
    """Print the words of one product at each level, and those of each of `polynomials`."""
    parameters = kw.Parameters.from_bits(10, [50] + [40] * LEVELS, [50], 40, insecure=True)
    generator = kw.KeyGenerator(kw.SecretKey.generate(parameters))
    evaluator = kw.Evaluator(parameters, generator.evaluation_keys())
    encryptor = kw.Encryptor(generator.public_key())
    ciphertexts = [encryptor.encrypt([0.5], level=level) for level in range(LEVELS + 1)]
    products = [rows(partial(evaluator.square, ciphertext)) for ciphertext in ciphertexts[1:]]
    highest = ciphertexts[LEVELS]
    counts = [
        rows(partial(evaluator.polynomial, highest, spec.coefficients, spec.basis)) for spec in polynomials()
    ]
    json.dump({"products": [0, *products], "polynomials": counts}, sys.stdout)


if __name__ == "__main__":
    main()
