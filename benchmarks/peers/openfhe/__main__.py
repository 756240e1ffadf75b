"""OpenFHE from its PyPI wheel, without HEXL: hybrid key switching, manual rescaling, ternary secret."""

from __future__ import annotations

import os
import random
import time
from importlib.metadata import version
from typing import Any

from harness.programs.peer import HOISTED_ROTATIONS, Bench, Options, ParameterSet, leave, parse_options


def main() -> None:
    """Measure one parameter set at one alpha."""
    options = parse_options("openfhe")
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # read when the library loads
    bench = Bench("openfhe", version("openfhe"), "openmp", options.alpha, options)
    scheme = Scheme(options)
    measure_keys(bench, scheme)
    for level in options.parameters.levels:
        measure_level(bench, scheme, level)
    leave()


class Scheme:
    """A context with a key pair, the values that every ciphertext holds, and the errors against them."""

    def __init__(self, options: Options) -> None:
        import openfhe as fhe  # here, because loading it fixes the number of threads

        self.parameters: ParameterSet = options.parameters
        p = options.parameters
        literal = fhe.CCParamsCKKSRNS()
        literal.SetSecurityLevel(fhe.SecurityLevel.HEStd_NotSet)
        literal.SetRingDim(1 << p.log_n)
        literal.SetFirstModSize(p.log_q[0])
        literal.SetScalingModSize(p.log_scale)
        literal.SetMultiplicativeDepth(p.max_level)
        literal.SetNumLargeDigits(-(-len(p.log_q) // options.alpha))
        literal.SetScalingTechnique(fhe.ScalingTechnique.FIXEDMANUAL)
        literal.SetKeySwitchTechnique(fhe.KeySwitchTechnique.HYBRID)
        literal.SetSecretKeyDist(fhe.SecretKeyDist.UNIFORM_TERNARY)
        self.context: Any = fhe.GenCryptoContext(literal)
        for feature in ("PKE", "KEYSWITCH", "LEVELEDSHE"):
            self.context.Enable(getattr(fhe.PKESchemeFeature, feature))
        pair = self.context.KeyGen()
        self.secret, self.public = pair.secretKey, pair.publicKey
        generator = random.Random(1)
        self.values = [generator.uniform(-1, 1) for _ in range(p.slots)]
        self.squares = [value * value for value in self.values]

    def encode(self, level: int) -> Any:
        """The values as a plaintext; OpenFHE counts dropped primes, not levels."""
        return self.context.MakeCKKSPackedPlaintext(self.values, 1, self.parameters.max_level - level)

    def encrypt(self, level: int) -> Any:
        """Encode and encrypt with the public key."""
        return self.context.Encrypt(self.public, self.encode(level))

    def decrypt(self, ciphertext: Any) -> Any:
        """Decrypt and decode."""
        return self.context.Decrypt(self.secret, ciphertext)

    def plaintext_error(self, plaintext: Any, expected: list[float]) -> float:
        """Largest slot error of a decoded plaintext."""
        plaintext.SetLength(self.parameters.slots)
        slots: list[float] = plaintext.GetRealPackedValue()
        return max(abs(f - w) for f, w in zip(slots, expected, strict=True))

    def error(self, ciphertext: Any, expected: list[float]) -> float:
        """Largest slot error of a ciphertext."""
        return self.plaintext_error(self.decrypt(ciphertext), expected)

    def rotation_error(self, ciphertext: Any, by: int) -> float:
        """Largest slot error of a ciphertext that should hold the values rotated left."""
        return self.error(ciphertext, self.values[by:] + self.values[:by])


def measure_keys(bench: Bench, scheme: Scheme) -> None:
    """Make the keys that the wanted works need; each rotation key is timed once."""
    top = scheme.parameters.max_level
    if any(map(bench.wants, ("multiply", "multiply_relin", "rescale"))):
        scheme.context.EvalMultKeyGen(scheme.secret)
    if any(map(bench.wants, ("keygen", "rotate", "rotate_hoisted"))):
        seconds = []
        for rotation in HOISTED_ROTATIONS:
            start = time.perf_counter()
            scheme.context.EvalRotateKeyGen(scheme.secret, [rotation])
            seconds.append(time.perf_counter() - start)
        if bench.wants("keygen"):
            last = HOISTED_ROTATIONS[-1]
            rotated = scheme.context.EvalRotate(scheme.encrypt(top), last)
            bench.emit("keygen", top, seconds, scheme.rotation_error(rotated, last), None)


def measure_level(bench: Bench, scheme: Scheme, level: int) -> None:
    """Measure every operation on fresh ciphertexts of one level."""
    context, values, squares = scheme.context, scheme.values, scheme.squares
    x, y = scheme.encrypt(level), scheme.encrypt(level)

    def hoisted() -> list[Any]:
        digits = context.EvalFastRotationPrecompute(x)
        return [context.EvalFastRotation(x, by, digits) for by in HOISTED_ROTATIONS]

    def hoisted_error(rotated: list[Any]) -> float:
        pairs = zip(rotated, HOISTED_ROTATIONS, strict=True)
        return max(scheme.rotation_error(ciphertext, by) for ciphertext, by in pairs)

    bench.measure(
        "encode", level, lambda: scheme.encode(level), lambda plain: scheme.plaintext_error(plain, values)
    )
    bench.measure("encrypt", level, lambda: scheme.encrypt(level), lambda c: scheme.error(c, values))
    bench.measure(
        "decrypt", level, lambda: scheme.decrypt(x), lambda plain: scheme.plaintext_error(plain, values)
    )
    bench.measure("rotate", level, lambda: context.EvalRotate(x, 1), lambda c: scheme.rotation_error(c, 1))
    bench.measure("rotate_hoisted", level, hoisted, hoisted_error, operations=len(HOISTED_ROTATIONS))
    bench.measure(
        "multiply", level, lambda: context.Rescale(context.EvalMult(x, y)), lambda c: scheme.error(c, squares)
    )
    bench.measure("multiply_relin", level, lambda: context.EvalMult(x, y), lambda c: scheme.error(c, squares))
    if bench.wants("rescale"):
        product = context.EvalMult(x, y)
        bench.measure("rescale", level, lambda: context.Rescale(product), lambda c: scheme.error(c, squares))


if __name__ == "__main__":
    main()
