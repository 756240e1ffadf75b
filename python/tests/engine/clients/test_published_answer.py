"""A published answer of a thin client gives its secret away, bootstrapped or not: bootstrapping first is no
protection against IND-CPA-D, which the paper on boosted deflation suggests (section 3.5, appendix 6).

Anyone who sees an answer `c_0, c_1` and its exact decryption `m` solves `c_0 + c_1 s = m`.
"""

from __future__ import annotations

import io
import struct

import keywright as kw
import numpy as np
from tests.bootstraps import DEGREE_30

LOG_N = 10
N = 1 << LOG_N
SLOTS = N // 2
HEADER = 48
"""Bytes of an object beside its descriptor."""


def polynomials(answer: bytes, width: int) -> tuple[float, list[int], list[int]]:
    """Scale, c_0 in the order of the numbers, c_1, from the bytes of a compact ciphertext of all bits."""
    (length,) = struct.unpack_from("<I", answer, 32)
    descriptor = answer[44 : 44 + length]
    assert descriptor[16:21] == bytes([2, LOG_N - 1, 0, 0, 0]), "complex slots, nothing dropped, no seed"
    (scale,) = struct.unpack_from("<d", descriptor, 23)
    bits = int.from_bytes(answer[HEADER + length : -4], "little")
    words = [bits >> width * i & (1 << width) - 1 for i in range(2 * N)]
    return scale, words[:N], words[N:]


def places() -> list[int]:
    """The coefficient of every number of complex values in all slots."""
    reverse = [int(f"{j:0{LOG_N - 1}b}"[::-1], 2) for j in range(SLOTS)]
    return [*reverse, *(SLOTS + place for place in reverse)]


def transformed(values: list[int], root: int, q: int) -> list[int]:
    """Values at 1, root, root^2, ..., of a polynomial whose length is the order of the root."""
    if len(values) == 1:
        return values
    even, odd = (transformed(values[k::2], root * root % q, q) for k in (0, 1))
    powers = [1]
    for _ in odd[1:]:
        powers.append(powers[-1] * root % q)
    right = [x * power % q for x, power in zip(odd, powers, strict=True)]
    pairs = list(zip(even, right, strict=True))
    return [(a + b) % q for a, b in pairs] + [(a - b) % q for a, b in pairs]


def quotient(above: list[int], below: list[int], q: int) -> list[int]:
    """The polynomial whose product with another one is a third, modulo X^N + 1 and q; centred."""
    psi = next(r for x in range(2, 100) if pow(r := pow(x, (q - 1) // (2 * N), q), N, q) == q - 1)
    twists = [pow(psi, i, q) for i in range(N)]

    def forward(values: list[int]) -> list[int]:
        return transformed([x * t % q for x, t in zip(values, twists, strict=True)], psi * psi % q, q)

    residues = [a * pow(b, -1, q) % q for a, b in zip(forward(above), forward(below), strict=True)]
    back = transformed(residues, pow(psi, -2, q), q)
    out = [x * pow(N * t, -1, q) % q for x, t in zip(back, twists, strict=True)]
    return [x - q if x > q // 2 else x for x in out]


def attacked(answer: bytes, decrypted: list[float], q: int) -> list[int]:
    """What the equation gives for the secret, from bytes and coefficients that anybody has."""
    scale, c_0, c_1 = polynomials(answer, q.bit_length())
    above = [round(value * scale) % q for value in decrypted]
    for place, residue in zip(places(), c_0, strict=True):
        above[place] = (above[place] - residue) % q
    return quotient(above, c_1, q)


def secret_of(client: kw.thin.Client) -> list[int]:
    """Coefficients of a client's secret, two bits each."""
    body = client.secret_bytes()[-4 - N // 4 : -4]
    return [(0, 1, 0, -1)[body[i // 4] >> 2 * (i % 4) & 3] for i in range(N)]


def test_a_published_answer_of_a_bootstrapping_gives_the_secret_away() -> None:
    q_bits = [50, 40, 40, 45, 45, 45, *[50] * 14]
    parameters = kw.Parameters.from_bits(LOG_N, q_bits, [50, 50, 50], 45, insecure=True)
    plan = kw.BootstrapperPlan(
        parameters,
        slots=SLOTS,
        **DEGREE_30,
        output_level=5,
    )
    thin = plan.client_parameters(30)
    client = kw.thin.Client(thin, bytes(range(32)))
    stream, keys = client.key_stream(plan.required_keys, client.session()), kw.EvaluationKeys(parameters)
    while True:
        file = io.BytesIO()
        if not stream.write_next(file.write):
            break
        keys.add(kw.keys.SwitchingKey.from_bytes(file.getvalue(), parameters))
    evaluator, bootstrapper = kw.Evaluator(parameters, keys), kw.Bootstrapper(plan)

    numbers = np.random.default_rng(3).integers(-(1 << 29), 1 << 29, thin.capacity)
    sent = thin.read_upload(client.encrypt(numbers), parameters)
    low = bootstrapper.slots_to_coeffs(evaluator, bootstrapper.bootstrap_coefficients(evaluator, sent))
    decrypted = kw.Decryptor(kw.SecretKey.from_bytes(client.secret_bytes(), parameters)).decrypt(low)
    # The noise of the bootstrapping, which is said to protect, is there.
    assert np.abs(decrypted[places()] - numbers / 2**30).max() > 2.0**-30
    secret = attacked(thin.write_answer(low), decrypted.tolist(), thin.modulus)
    assert secret == secret_of(client)
    # Noise that the holder of the key adds as it decrypts is what the equation does not survive.
    flooded = decrypted + 2.0**-30
    assert attacked(thin.write_answer(low), flooded.tolist(), thin.modulus) != secret
