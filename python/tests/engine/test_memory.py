"""Predicted memory compared with measured memory, and behaviour without memory."""

from __future__ import annotations

import platform
import subprocess
import sys

import keywright as kw
import numpy as np
import pytest
from keywright import _core
from keywright.plan.memory import machine
from tests.matrices import cells

Q_BITS, P_BITS = [58, *[45] * 7, *[58] * 10], [58] * 4


def peak(work: object) -> int:
    """Return the bytes that some work uses at its peak, beyond those in use before."""
    assert callable(work)
    work()
    _core.trim_memory()
    _core.reset_memory_peak()
    before = _core.memory_use()["live"]
    kept = work()
    held = _core.memory_use()["peak"] - before
    del kept
    return held


def require(what: str, predicted: int, held: int) -> None:
    assert 0.9 < predicted / held < 1.1, (what, predicted, held)


def test_operations_hold_what_is_predicted() -> None:
    parameters = kw.Parameters.from_bits(13, [50, *[45] * 8], [50] * 3, 45, insecure=True)
    generator = kw.KeyGenerator(kw.SecretKey.generate(parameters))
    encryptor, top = kw.Encryptor(generator.public_key()), parameters.max_level

    def rotation(steps: int) -> kw.KeySpec:
        return kw.KeySpec.rotation(parameters, steps, alpha=3)

    product, special = kw.KeySpec.relinearization(parameters, alpha=3), rotation(1).special
    specs = [*map(rotation, range(1, 41)), *(rotation(40 * k) for k in range(2, 16)), product]
    keys = generator.evaluation_keys(specs=specs, relinearization=False)
    evaluator = kw.Evaluator(parameters, keys)
    given = encryptor.encrypt(np.linspace(-1, 1, parameters.max_slots), magnitude=1)
    threads = kw.threads()
    try:
        kw.set_threads(1)
        require("rotation", rotation(1).scratch_bytes(), peak(lambda: evaluator.rotate(given, 1)))
        four = peak(lambda: evaluator.rotate_hoisted(given, [1, 2, 3, 4]))
        require("four rotations", rotation(1).scratch_bytes(keys=4), four)
        polynomials = 3 * (top + 1) * 8 * parameters.n
        switched = product.scratch_bytes(rescale=True)
        require("product", polynomials + switched, peak(lambda: evaluator.multiply(given, given)))
        for degree in (3, 7, 15, 31):
            for basis in ("monomial", "chebyshev"):
                coefficients = [1 / (k + 1) for k in range(degree + 1)]
                held = peak(lambda c=coefficients, b=basis: evaluator.polynomial(given, c, b))
                predicted = _core.polynomial_scratch(product, top, coefficients, basis)
                require(f"{basis} of degree {degree}", predicted, held)
        # Few and many baby steps, few and many giant steps.
        shapes = [
            ([0], 1, 8),
            (list(range(16)), 16, 8),
            (list(range(40)), 40, 4),
            (list(range(200)), 40, 7),
            ([40 * (k // 2) + k % 2 for k in range(32)], 40, 8),
        ]
        for indices, n1, level in shapes:
            rows = np.random.default_rng(1).uniform(-1, 1, (len(indices), parameters.max_slots))
            for storage in ("encoded", "coefficients"):
                transform = kw.LinearTransform.from_rows(
                    parameters, indices, rows, level=level, n1=n1, special=special, storage=storage
                )
                held = peak(lambda t=transform: evaluator.linear_transform(given, t))
                periods = [parameters.max_slots] * len(indices) if storage == "coefficients" else None
                predicted = _core.transform_scratch(
                    parameters,
                    level,
                    special,
                    babies=len({r % n1 for r in indices} - {0}),
                    giants=len({r - r % n1 for r in indices}),
                    above=int(level < top),
                    periods=periods,
                )
                require(f"{len(indices)} {storage} diagonals, {n1} baby steps", predicted, held)
    finally:
        kw.set_threads(threads)


@pytest.mark.parametrize(
    ("storage", "values"), cells(["encoded", "coefficients", "streamed"], ["complex", "real", "pair"])
)
def test_the_stages_of_a_bootstrap_hold_what_is_predicted(storage: str, values: str) -> None:
    parameters = kw.Parameters.from_bits(13, Q_BITS, P_BITS, 45, insecure=True)
    plan = kw.BootstrapperPlan(
        parameters,
        values=values,
        slots_to_coeffs=2,
        coeffs_to_slots=2,
        log_ratio=8,
        cosine_degree=62,
        double_angles=1,
        arcsine_degree=1,
        stages_apart=True,
        ephemeral_weight=32,
    )
    generator = kw.KeyGenerator(kw.SecretKey.generate(parameters))
    keys = generator.evaluation_keys(specs=plan.required_keys, relinearization=False)
    evaluator, b = kw.Evaluator(parameters, keys), kw.Bootstrapper(plan, storage=storage)
    slots = np.random.default_rng(1).uniform(-1, 1, plan.slots)
    given = kw.Encryptor(generator.public_key()).encrypt(slots, level=plan.input_level, magnitude=1)
    threads = kw.threads()
    try:
        kw.set_threads(1)
        predicted = plan.scratch_bytes(storage)
        assert list(predicted) == list(plan.levels)
        coefficients = b.slots_to_coeffs(evaluator, given)
        raised = b.mod_raise(evaluator, coefficients)
        held = {
            "slots_to_coeffs": peak(lambda: b.slots_to_coeffs(evaluator, given)),
            "mod_raise": peak(lambda: b.mod_raise(evaluator, coefficients)),
            "coeffs_to_slots": peak(lambda: b.coeffs_to_slots(evaluator, raised)),
        }
        if storage == "streamed":
            # The numbers from which matrices are made are not buffers.
            assert all(predicted[stage] >= 0.9 * seen for stage, seen in held.items())
        else:
            for stage, seen in held.items():
                assert 0.9 < predicted[stage] / seen < 1.1, (stage, predicted[stage], seen)
        together = b.bootstrap_pair if values == "pair" else b.bootstrap
        whole = peak(lambda: together(evaluator, *[given] * (1 + (values == "pair"))))
        assert max(predicted.values()) > 0.9 * whole
    finally:
        kw.set_threads(threads)


def test_counts_outside_their_range_are_refused() -> None:
    parameters = kw.Parameters.from_bits(10, [50, 45, 45], [50], 45, insecure=True)
    spec = kw.KeySpec.relinearization(parameters, level=1)
    with pytest.raises(kw.errors.LevelError):
        spec.scratch_bytes(2)
    with pytest.raises(kw.errors.ParameterError, match="0 threads"):
        spec.scratch_bytes(threads=0)
    with pytest.raises(kw.errors.LevelError):
        _core.polynomial_scratch(spec, 1, [1.0] * 8)
    with pytest.raises(kw.errors.LevelError):
        _core.transform_scratch(parameters, 3, [3], babies=1, giants=1)
    with pytest.raises(kw.errors.ParameterError, match="power of two"):
        _core.transform_scratch(parameters, 1, [3], babies=1, giants=1, periods=[3])


LIMITED = """
import resource
import keywright as kw
import numpy as np
from keywright import _core


def status(name):
    line = next(line for line in open("/proc/self/status") if line.startswith(name))
    return int(line.split()[1]) << 10


parameters = kw.Parameters.from_bits(14, [50] + [45] * 8, [50] * 3, 45, insecure=True)
kw.set_threads(2)
generator = kw.KeyGenerator(kw.SecretKey.generate(parameters))
specs = [kw.KeySpec.rotation(parameters, 1, alpha=1)]
evaluator = kw.Evaluator(parameters, generator.evaluation_keys(specs=specs, relinearization=False))
ciphertext = kw.Encryptor(generator.public_key()).encrypt(np.ones(parameters.max_slots), magnitude=1)
expected = evaluator.rotate(ciphertext, 1).to_bytes()
rows = np.random.default_rng(1).uniform(-1, 1, (1280, 1024))
transform = lambda: kw.LinearTransform.from_rows(parameters, range(1280), rows, level=8)
needed = kw.LinearTransform.predicted_bytes([1024] * 1280, 12)
assert needed >= 120 << 20

held = status("VmRSS")
made = transform()
assert made.bytes == needed and status("VmRSS") - held > needed * 0.9
del made
_core.trim_memory()
assert status("VmRSS") - held < needed / 10, (status("VmRSS"), held)

resource.setrlimit(resource.RLIMIT_AS, (status("VmSize") + (64 << 20), resource.RLIM_INFINITY))
for work in (transform, lambda: [evaluator.rotate(ciphertext, 1) for _ in range(400)]):
    try:
        work()
    except kw.errors.OutOfMemoryError as error:
        assert isinstance(error, MemoryError) and 0 < error.bytes <= 1.01 * needed, error.bytes
    else:
        raise SystemExit("there was memory")
    assert evaluator.rotate(ciphertext, 1).to_bytes() == expected
print("goes on")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_memory_is_given_back_and_where_there_is_none_an_error_is_raised() -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "goes on"), done.stderr


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
def test_freed_memory_serves_the_next_arrays_while_it_is_kept() -> None:
    import resource

    def faults() -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(200):
            np.ones(1 << 17)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    with machine.large_blocks_kept():
        with machine.large_blocks_kept():
            np.ones(1 << 17)
        kept = faults()
    assert 10 * kept < faults()


def test_a_compilation_keeps_freed_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[bool] = []
    monkeypatch.setattr(machine, "keep_large_blocks", calls.append)
    with pytest.raises(TypeError):
        kw.compile(object())
    assert calls == [True, False]
