"""Keys that are streamed from a file or derived from master keys give the same results."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import keywright as kw
import numpy as np
import pytest
from keywright import plan as planning
from keywright.errors import WorkloadError
from keywright.plan.keys import plan_file
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.workload.network import convert_bootstrap
from tests.plan.test_execution import MODEL, bootstrapping, digits, make_plan


def test_streamed_keys_give_the_same_within_their_memory(tmp_path: Path) -> None:
    side = digits()
    execution = side.execution("kds")
    specs = execution.key_specs
    side.generator.save_evaluation_keys(tmp_path / "keys.kw", specs)
    whole = kw.EvaluationKeys.load(tmp_path / "keys.kw", side.parameters)
    expected = side.run(execution, whole)
    assert whole.streaming is None
    steps = execution.key_steps
    least = max(spec.bytes for spec in specs)
    working_set = max(sum(spec.bytes for spec in step) for step in steps)
    assert least < working_set < whole.bytes
    peaks = []
    for memory in (least, working_set // 2, working_set, (working_set + whole.bytes) // 2, whole.bytes):
        keys = execution.load_keys(tmp_path / "keys.kw", memory=memory)
        assert (keys.bytes, len(keys)) == (whole.bytes, len(specs))
        for _ in range(2):
            # The result is independent of where a key was, and of how many keys of an operation were in
            # memory.
            assert np.array_equal(side.run(execution, keys), expected)
        seen = keys.streaming
        assert seen is not None
        assert seen["peak_bytes"] <= memory
        assert seen["loads"] >= len(specs)
        peaks.append(seen["loads"])
    assert all(less >= more for less, more in pairwise(peaks))
    assert peaks[-1] == len(specs)
    with pytest.raises(
        kw.errors.OutOfMemoryError, match="allow at least", check=lambda error: error.code == "keys"
    ) as error:
        execution.load_keys(tmp_path / "keys.kw", memory=least - 1)
    assert (error.value.needed, error.value.budget) == (least, least - 1)
    assert error.value.element.startswith(("galois", "relin"))
    with pytest.raises(ValueError, match="no network or bootstrap was given"):
        _ = PlanExecution(execution.plan, side.parameters).key_steps


def test_threads_share_streamed_keys(tmp_path: Path) -> None:
    side = digits()
    execution = side.execution("power-of-two")
    specs = execution.key_specs
    side.generator.save_evaluation_keys(tmp_path / "keys.kw", specs)
    memory = max(spec.bytes for spec in specs)
    keys = execution.load_keys(tmp_path / "keys.kw", memory=memory)
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda _: side.run(execution, keys), range(3)))
    assert all(np.array_equal(result, results[0]) for result in results)
    seen = keys.streaming
    assert seen is not None
    assert seen["peak_bytes"] <= memory


def test_threads_share_derived_keys(tmp_path: Path) -> None:
    """Two evaluators and room for one key: each operation waits for its turn, then for its keys."""
    side = digits()
    planned = planning.DerivationPlanner(side.execution("power-of-two").plan, MODEL).priced[0].planned
    execution = PlanExecution(planned, side.parameters, side.program)
    path, specs = tmp_path / "keys.kw", execution.key_specs
    side.generator.save_evaluation_keys(path, specs)
    masters = execution.make_masters(side.secret)
    memory = masters.bytes + max(spec.bytes for spec in (*specs, *execution.derived_specs))
    keys = execution.load_keys(path, masters, memory)
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda _: side.run(execution, keys), range(2)))
    assert np.array_equal(results[0], results[1])
    seen = keys.streaming
    assert seen is not None
    assert seen["peak_bytes"] <= memory


@pytest.mark.parametrize("name", [pytest.param("kds", marks=pytest.mark.full), "optimal-small"])
def test_derived_keys_give_the_same_within_the_bound(name: str, tmp_path: Path) -> None:
    side = digits()
    direct = side.execution(name)
    # A key of one digit of 45 bits over 100 bits of special primes hides what derivations add.
    price = planning.DerivationPlanner(direct.plan, MODEL).priced[0]
    execution = PlanExecution(
        plan_file.from_json(plan_file.to_json(price.planned)), side.parameters, side.program
    )
    assert execution.plan == price.planned
    specs, derived = execution.key_specs, execution.derived_specs
    assert {spec.kind for spec in specs} == {"relinearization"}
    assert len(specs) + len(derived) == len(direct.key_specs)
    masters = execution.make_masters(side.secret)
    # Sent and stored bytes are as predicted, to the byte; a seed in memory has 32.
    sent = sum(spec.bytes for spec in specs) + masters.bytes
    assert sent == price.sent_bytes == price.planned.sent_bytes
    assert sum(spec.bytes for spec in (*specs, *derived)) == price.stored_bytes
    derivation = masters.derivation(derived, price.max_hops)
    assert (derivation.derived, derivation.depth) == (price.costs.derived, price.costs.depth)
    path = tmp_path / "keys.kw"
    side.generator.save_evaluation_keys(path, specs)
    received = kw.keys.MasterKeys.from_bytes(masters.to_bytes(), side.parameters)
    whole = execution.load_keys(path, received)
    expected = side.run(execution, whole)
    least = masters.bytes + max(spec.bytes for spec in (*specs, *derived))
    loads = []
    for memory in (least, masters.bytes + whole.bytes // 2, masters.bytes + whole.bytes):
        keys = execution.load_keys(path, received, memory)
        for _ in range(2):
            # Evicted keys are restored bit for bit.
            assert np.array_equal(side.run(execution, keys), expected)
        seen = keys.streaming
        assert seen is not None
        assert masters.bytes < seen["peak_bytes"] <= memory
        loads.append(seen["loads"])
    assert loads[0] > loads[-1] == len(whole)
    with pytest.raises(kw.errors.OutOfMemoryError, check=lambda error: error.code == "keys") as error:
        execution.load_keys(path, received, least - 1)
    assert error.value.needed == least


def test_master_keys_have_to_be_those_of_the_plan(tmp_path: Path) -> None:
    side = digits()
    direct = side.execution("kds")
    price = planning.DerivationPlanner(direct.plan, MODEL).priced[0]
    execution = PlanExecution(price.planned, side.parameters, side.program)
    path = tmp_path / "keys.kw"
    side.generator.save_evaluation_keys(path, execution.key_specs)
    masters = execution.make_masters(side.secret)
    fewer = kw.keys.MasterKeys.generate(side.secret, [1], price.extra_bits)
    with pytest.raises(
        kw.errors.MismatchError, match="master keys", check=lambda error: error.code == "plan"
    ) as error:
        execution.load_keys(path, fewer)
    assert error.value.found != error.value.expected
    with pytest.raises(
        kw.errors.MismatchError, match="there are none", check=lambda error: error.code == "plan"
    ):
        execution.load_keys(path)
    with pytest.raises(
        kw.errors.MismatchError, match="no master keys", check=lambda error: error.code == "plan"
    ):
        direct.load_keys(path, masters)
    with pytest.raises(
        kw.errors.MismatchError, match="no master keys", check=lambda error: error.code == "plan"
    ):
        direct.make_masters(side.secret)
    text = plan_file.to_json(price.planned)
    for old, new, reason in (
        ('"extra_bits":[', '"extra_bits":[0,', "must have from"),
        ('"masters":{"automorphisms":[', '"masters":{"automorphisms":[0,', "not an automorphism"),
        ('"max_hops":', '"max_hops":9', "255"),
        ('"extra_bits":[', '"extra_bits":[' + 40 * "50,", "extra primes"),
    ):
        assert old in text
        with pytest.raises(WorkloadError, match=reason):
            plan_file.from_json(text.replace(old, new))


def test_a_bootstrap_with_streamed_keys_takes_them_one_after_the_other(tmp_path: Path) -> None:
    plan, secret = bootstrapping(True)
    planned = make_plan("kds", convert_bootstrap(plan, "bootstrap"))
    execution = PlanExecution(planned, plan.parameters, bootstraps=[plan])
    generator = kw.KeyGenerator(secret, bytes(32))
    specs = execution.key_specs
    generator.save_evaluation_keys(tmp_path / "keys.kw", specs)
    values = np.random.default_rng(6).uniform(-1, 1, plan.slots)
    encryptor = kw.Encryptor(generator.public_key(), bytes(32))
    fresh = encryptor.encrypt(values, slots=plan.slots, level=plan.input_level)
    bootstrapper = kw.Bootstrapper(execution.bootstrapper_plans[0])
    least = max(spec.bytes for spec in specs)
    results, peaks = [], []
    for memory in (None, least):
        keys = execution.load_keys(tmp_path / "keys.kw", memory=memory)
        result = bootstrapper.bootstrap(kw.Evaluator(plan.parameters, keys), fresh)
        results.append(kw.Decryptor(secret).decrypt(result))
        peaks.append(keys.streaming)
    assert np.array_equal(results[0], results[1])
    assert peaks[0] is None
    assert peaks[1] is not None
    assert peaks[1]["peak_bytes"] <= least


def test_files_that_are_not_the_plans_keys(tmp_path: Path) -> None:
    side = digits()
    execution = side.execution("kds")
    path = tmp_path / "keys.kw"
    side.generator.save_evaluation_keys(path, execution.key_specs)
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[-5] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(kw.errors.KeySourceError, match="checksum"):
        side.run(execution, execution.load_keys(path, memory=1 << 30))
    path.write_bytes(whole[:-1])
    with pytest.raises(kw.errors.FormatError, match="missing"):
        execution.load_keys(path, memory=1 << 30)
    elsewhere = kw.Parameters.from_bits(11, [55, *[44] * 5], [50, 50], 44, insecure=True)
    generator = kw.KeyGenerator(kw.SecretKey.generate(elsewhere))
    generator.save_evaluation_keys(path, [kw.KeySpec.rotation(elsewhere, 1)])
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
        execution.load_keys(path, memory=1 << 30)
    side.generator.save_evaluation_keys(path, execution.key_specs[1:])
    with pytest.raises(
        kw.errors.MismatchError, match="make them for this model", check=lambda error: error.code == "plan"
    ):
        execution.load_keys(path, memory=1 << 30)


def test_a_file_that_is_written_to_while_keys_are_streamed_is_refused(tmp_path: Path) -> None:
    """Keys of another owner in the same places, with correct checksums."""
    side = digits()
    execution = side.execution("kds")
    path, other = tmp_path / "keys.kw", tmp_path / "other.kw"
    specs = execution.key_specs
    side.generator.save_evaluation_keys(path, specs)
    kw.KeyGenerator(kw.SecretKey.generate(side.parameters)).save_evaluation_keys(other, specs)
    least = max(spec.bytes for spec in specs)
    keys = execution.load_keys(path, memory=least)
    expected = side.run(execution, keys)
    # A replaced file is another one: the opened file stays.
    other_bytes = other.read_bytes()
    other.rename(path)
    assert np.array_equal(side.run(execution, keys), expected)
    side.generator.save_evaluation_keys(path, specs)
    for written in (other_bytes, path.read_bytes()[: path.stat().st_size // 2]):
        keys = execution.load_keys(path, memory=least)
        with path.open("r+b") as file:
            file.write(written)
            file.truncate()
        with pytest.raises(kw.errors.KeySourceError, match="open the keys again"):
            side.run(execution, keys)
        side.generator.save_evaluation_keys(path, specs)
