"""DESILO FHE from its PyPI wheel (closed source): ring, primes and digits follow from the levels."""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import Any

import desilofhe
import numpy as np
from harness.programs.peer import HOISTED_ROTATIONS, Bench, leave, parse_options


def main() -> None:
    """Measure one parameter set; the digits are the library's own, so `alpha` is null."""
    options = parse_options("desilofhe")
    p = options.parameters
    modes: dict[str, Any] = {"mode": "cpu"}
    if options.threads > 1:
        modes = {"mode": "parallel", "thread_count": options.threads}
    engine = desilofhe.Engine(max_level=p.max_level, **modes)
    if engine.slot_count != p.slots:
        raise SystemExit(
            f"desilofhe takes {engine.slot_count} slots for {p.max_level} levels; this set has {p.slots}"
        )
    bench = Bench("desilofhe", version("desilofhe"), modes["mode"], None, options)
    scheme = Scheme(engine)
    measure_keys(bench, scheme, p.max_level)
    for level in p.levels:
        measure_level(bench, scheme, level)
    leave()


class Scheme:
    """An engine with its keys and the values that every ciphertext holds."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.secret = engine.create_secret_key()
        self.public = engine.create_public_key(self.secret)
        self.relinearization = engine.create_relinearization_key(self.secret)
        self.rotations: list[Any] = []
        generator = np.random.default_rng(1)
        shape = engine.slot_count
        self.values = generator.uniform(-1, 1, shape) + 1j * generator.uniform(-1, 1, shape)

    def error(self, ciphertext: Any, expected: Any) -> float:
        """Largest slot error of a ciphertext."""
        return float(np.abs(self.engine.decrypt(ciphertext, self.secret) - expected).max())

    def rotation_error(self, ciphertext: Any, by: int) -> float:
        """Largest slot error of a ciphertext that should hold the values rotated left."""
        return self.error(ciphertext, np.roll(self.values, -by))


def measure_keys(bench: Bench, scheme: Scheme, top: int) -> None:
    """Make and time the rotation keys."""
    if not any(map(bench.wants, ("keygen", "rotate", "rotate_hoisted"))):
        return
    seconds = []
    for rotation in HOISTED_ROTATIONS:
        start = time.perf_counter()
        scheme.rotations.append(scheme.engine.create_fixed_rotation_key(scheme.secret, rotation))
        seconds.append(time.perf_counter() - start)
    if bench.wants("keygen"):
        ciphertext = scheme.engine.encrypt(scheme.values, scheme.public, top)
        rotated = scheme.engine.rotate(ciphertext, scheme.rotations[-1])
        error = scheme.rotation_error(rotated, HOISTED_ROTATIONS[-1])
        bench.emit("keygen", top, seconds, error, scheme.rotations[-1].nbytes)


def measure_level(bench: Bench, scheme: Scheme, level: int) -> None:
    """Measure every operation on fresh ciphertexts of one level. A product is rescaled within the call."""
    engine, values = scheme.engine, scheme.values
    x = engine.encrypt(values, scheme.public, level)
    y = engine.encrypt(values, scheme.public, level)

    def hoisted_error(rotated: list[Any]) -> float:
        pairs = zip(rotated, HOISTED_ROTATIONS, strict=True)
        return max(scheme.rotation_error(ciphertext, by) for ciphertext, by in pairs)

    bench.measure(
        "encode",
        level,
        lambda: engine.encode(values, level),
        lambda plain: float(np.abs(engine.decode(plain) - values).max()),
    )
    bench.measure(
        "encrypt",
        level,
        lambda: engine.encrypt(values, scheme.public, level),
        lambda c: scheme.error(c, values),
        size=x.nbytes,
    )
    bench.measure(
        "decrypt",
        level,
        lambda: engine.decrypt(x, scheme.secret),
        lambda slots: float(np.abs(slots - values).max()),
        size=x.nbytes,
    )
    bench.measure(
        "multiply",
        level,
        lambda: engine.multiply(x, y, scheme.relinearization),
        lambda c: scheme.error(c, values * values),
        size=scheme.relinearization.nbytes,
    )
    if scheme.rotations:
        key_bytes = scheme.rotations[0].nbytes
        bench.measure(
            "rotate",
            level,
            lambda: engine.rotate(x, scheme.rotations[0]),
            lambda c: scheme.rotation_error(c, 1),
            size=key_bytes,
        )
        bench.measure(
            "rotate_hoisted",
            level,
            lambda: engine.rotate_many(x, scheme.rotations),
            hoisted_error,
            size=key_bytes,
            operations=len(HOISTED_ROTATIONS),
        )


if __name__ == "__main__":
    main()
