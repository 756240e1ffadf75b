"""Half of a batch as the imaginary parts of the other: the same results, with half the maps."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.compiler import arrangement
from keywright.compiler.graph.graph import Graph
from keywright.compiler.joining import join_halves
from keywright.compiler.layout.layout_choice import choose_layouts
from keywright.errors import FormatError
from keywright.model.exchange.interface import interface
from keywright.model.served.input_output import Places
from keywright.model.served.manifest import Manifest
from keywright.plan import KeyFrontier
from keywright.program.file.storage import digest
from keywright.program.file.validation import validate
from keywright.program.instructions import Instruction, Opcode, Scales
from keywright.program.interface import ProgramInput, ProgramOutput
from keywright.program.operands.diagonals import DiagonalMatrix
from keywright.program.operands.layout import Layout
from keywright.runtime import run_clear, simulate
from keywright.runtime.clear_backend import ClearBackend
from keywright.runtime.clear_run import run_batch
from keywright.runtime.executor import execute
from keywright.runtime.scales import as_ciphertext
from keywright.runtime.simulation.backend import SimulatedBackend
from keywright.runtime.simulation.ciphertext import SimulatedCiphertext
from numpy.typing import NDArray
from onnx import helper
from tests.ciphertexts import decrypt_result, encrypt_sample
from tests.compiler.placement.test_bootstrapped_network import residual_network, small_plan
from tests.compiler.placement.test_bootstrapped_pairs import backend, with_pairs
from tests.compiler.placement.test_rings_encrypted import ring_plan, rings_of

Build = Callable[..., onnx.ModelProto]
ENTROPY = bytes(range(32))
node = helper.make_node


def polynomial_network(build: Build) -> onnx.ModelProto:
    """Polynomials around a shortcut, a product of two values, and a pool."""
    rng = np.random.default_rng(3)
    constants = {name: (rng.normal(size=(4, 4, 3, 3)) / 6).astype(np.float32) for name in ("v", "u")}
    constants |= {"w": (rng.normal(size=(4, 2, 3, 3)) / 4).astype(np.float32)}
    constants |= {"d": rng.normal(size=(4, 3)).astype(np.float32)}
    nodes = [
        node("Conv", ["x", "w"], ["a"], "a", pads=[1] * 4),
        node("Sigmoid", ["a"], ["b"], "b"),
        node("Conv", ["b", "v"], ["c"], "c", pads=[1] * 4),
        node("Tanh", ["c"], ["t"], "t"),
        node("Add", ["t", "b"], ["s"]),
        node("Mul", ["s", "c"], ["m"]),
        node("Conv", ["m", "u"], ["e"], "e", pads=[1] * 4),
        node("Add", ["e", "s"], ["f"]),
        node("Sigmoid", ["f"], ["g"], "g"),
        node("GlobalAveragePool", ["g"], ["p"]),
        node("Flatten", ["p"], ["q"]),
        node("MatMul", ["q", "d"], ["y"], "y"),
    ]
    return build(nodes, (2, 8, 8), constants)


CASES = [("residual", 4), ("residual", 8), ("polynomials", 2), ("residual", 2, True)]
NETWORKS = {"residual": residual_network, "polynomials": polynomial_network}


@dataclass(frozen=True)
class Case:
    """A network's program for some samples, and that for twice as many."""

    plan: kw.BootstrapperPlan
    one: compiler.Program
    joined: compiler.Program
    samples: NDArray[np.float64]


def compiled(build: Build, network: str, batch: int, rings: bool = False) -> Case:
    plan = ring_plan() if rings else small_plan("pair")
    samples = np.random.default_rng(8).uniform(-1, 1, (12, 2, 8, 8))
    options = (replace(compiler.Bootstrap.of(plan), pairs=False, input_log_n=0),)
    target = compiler.Target(slots=plan.slots, levels=plan.output_level, bootstraps=options, batch=batch)
    target = replace(target, rings=rings_of(plan) if rings else ())
    methods = {"sigmoid": "chebyshev:7", "tanh": "chebyshev:7"} if network == "polynomials" else {}
    fit = compiler.Fit(calibration=samples, activations=methods)
    one = compiler.compile_program(NETWORKS[network](build), target, fit)
    return Case(plan, one, join_halves(with_pairs(one, pairs=True)), samples)


@pytest.fixture(scope="module", params=CASES, ids=str)
def case(build: Build, request: pytest.FixtureRequest) -> Case:
    return compiled(build, *request.param)


@pytest.fixture(scope="module")
def residual(build: Build) -> Case:
    return compiled(build, "residual", 4)


def test_halves_have_the_results_of_the_program_for_one(case: Case) -> None:
    """Also of fewer samples than the batch has, in one half or in both."""
    whole = case.joined.batch
    assert whole == 2 * case.one.batch
    for count in (1, whole // 2, whole // 2 + 1, whole - 1, whole):
        samples = np.resize(case.samples, (count, *case.samples.shape[1:]))
        np.testing.assert_allclose(run_clear(case.joined, samples), run_clear(case.one, samples), atol=1e-9)


def test_maps_are_as_many_as_for_one_half(case: Case) -> None:
    one, joined = (Counter(step.opcode for step in each.instructions) for each in (case.one, case.joined))
    same: tuple[Opcode, ...] = ("linear_transform", "rotate")
    twice: tuple[Opcode, ...] = ("input", "mul", "polynomial", "bootstrap")
    assert all(joined[opcode] == one[opcode] for opcode in same)
    assert all(joined[opcode] == 2 * one[opcode] for opcode in twice)
    assert joined["conjugate"] == joined["real"] == joined["imaginary"]
    assert joined["conjugate"] <= joined["linear_transform"] + joined["add_both"]
    assert len(case.joined.bootstrap_pairs) == one["bootstrap"] > 0
    assert case.joined.depth == case.one.depth
    assert case.joined.layers[-1].stop == len(case.joined.instructions)
    assert len(case.joined.ranges) == 2 * len(case.one.ranges)
    transforms = [case.one.operands.transforms, case.joined.operands.transforms]
    assert len(transforms[0]) == len(transforms[1])


def test_key_switches_are_those_of_a_run(case: Case) -> None:
    program = case.joined
    clear = ClearBackend(program.slots, program.operands.bootstraps)
    inputs = [clear.encrypt(row, program.input.level) for row in program.pack(case.samples[: program.batch])]
    execute(program, clear, inputs)
    performed = Counter((each.kind, each.step, each.level) for each in clear.log)
    listed: Counter[tuple[str, int, int]] = Counter()
    for each in program.key_switches:
        listed[each.kind, each.step, each.level] += each.count
    assert performed == listed
    assert any(kind == "conjugation" for kind, *_ in listed)


def test_files_keep_halves_apart(case: Case, tmp_path: Path) -> None:
    """Earlier versions, which do not know their operations, refuse the version of such files."""
    path = tmp_path / "program.kwp"
    for program, version in ((case.one, 7), (case.joined, 8)):
        compiler.save(program, path)
        with zipfile.ZipFile(path) as archive:
            assert json.loads(archive.read("program.json"))["version"] == version
    loaded = compiler.load(path)
    assert loaded.instructions == case.joined.instructions
    assert digest(loaded) == digest(case.joined) != digest(case.one)
    samples = case.samples[: case.joined.batch]
    assert np.array_equal(run_batch(loaded, samples), run_batch(case.joined, samples))


@pytest.mark.parametrize("changes", [{"parts": 4}, {"parts": 2, "batch": 1}, {"parts": 1}], ids=str)
def test_other_parts_are_refused(residual: Case, changes: dict[str, Any]) -> None:
    program = residual.joined
    layout = replace(program.input.layout, **changes)
    changed = replace(program, input=replace(program.input, layout=layout))
    with pytest.raises(FormatError, match="layout"):
        validate(changed)


@pytest.mark.parametrize(
    ("opcode", "other", "message"),
    [
        ("join", "add", "add_both has operands with real values"),
        ("real", "add", "mul has operands with complex values"),
        ("conjugate", "real", "real has 1 operands"),
        ("add_both", "add_plain", "add_plain has operands with complex values"),
        ("imaginary", "add", "mul has operands with complex values"),
    ],
)
def test_operands_of_another_kind_are_refused(
    residual: Case, opcode: Opcode, other: Opcode, message: str
) -> None:
    program = residual.joined
    steps = tuple(
        replace(step, opcode=other) if step.opcode == opcode else step for step in program.instructions
    )
    with pytest.raises(FormatError, match=message):
        validate(replace(program, instructions=steps))


@pytest.mark.parametrize("opcode", ["real", "imaginary"])
@pytest.mark.parametrize("places", [(0, 0), (1, 0), (1, 1)])
def test_parts_are_of_a_value_and_its_conjugate(
    residual: Case, opcode: Opcode, places: tuple[int, int]
) -> None:
    """Others would be complex, and taken for real ones."""
    program = residual.joined
    steps = tuple(
        replace(step, operands=tuple(step.operands[place] for place in places))
        if step.opcode == opcode
        else step
        for step in program.instructions
    )
    with pytest.raises(FormatError, match="not a value and its conjugate"):
        validate(replace(program, instructions=steps))


def test_joined_operands_are_brought_to_one_scale() -> None:
    scales = Scales()
    steps = [
        Instruction("input", 0, (), 3),
        Instruction("mul", 1, (0, 0), 2),
        Instruction("drop_level", 2, (0,), 2),
        Instruction("join", 3, (2, 1), 2),
        Instruction("join", 4, (1, 2), 2),
    ]
    assert [scales.follow(step) for step in steps] == [[], [], [], [2], [2]]
    assert scales.of[1] == scales.of[3] == scales.of[4] != scales.of[2]


def test_each_room_has_its_layouts_once(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """Halves of a batch have the room of half the batch. Layers count all key switches of their values."""
    rooms, plain = [], choose_layouts

    def chosen(graph: Graph, room: int, *rest: Any, **options: Any) -> Mapping[int, Layout]:
        rooms.append((graph, room))
        return plain(graph, room, *rest, **options)

    monkeypatch.setattr(arrangement, "choose_layouts", chosen)
    plan = small_plan("pair")
    options = (compiler.Bootstrap.of(plan),)
    target = compiler.Target(slots=plan.slots, levels=plan.output_level, bootstraps=options, samples=32)
    samples = np.random.default_rng(8).uniform(-1, 1, (12, 2, 8, 8))
    program = compiler.compile_program(residual_network(build), target, compiler.Fit(calibration=samples))
    assert len({(id(graph), room) for graph, room in rooms}) == len(rooms) > 2
    assert program.input.layout.parts == 2
    counted = sum(each.count for each in program.key_switches if each.kind != "relinearization")
    assert sum(layer.rotations for layer in program.layers) == counted


def test_layouts_and_places_of_two_parts() -> None:
    """The second half is where the first is, in ciphertexts of its own, also in a ring of fewer slots."""
    layout = Layout(16, 8, np.asarray([0, 4], np.int32), batch=4, parts=2)
    values = np.arange(8.0).reshape(4, 2)
    rows = layout.pack(values)
    assert rows.tolist() == [2 * [0, 2, 0, 0, 1, 3, 0, 0], 2 * [4, 6, 0, 0, 5, 7, 0, 0]]
    assert layout.unpack(rows).tolist() == layout.unpack(rows[:, :8]).tolist() == values.tolist()
    assert [layout.element(1, slot) for slot in (0, 1, 2, 4, 12)] == [0, 0, None, 1, 1]
    places = Places((2,), 4, 2, 16, (0, 4), 2, 8, 2)
    assert np.array_equal(places.pack(values), rows)
    assert np.array_equal(places.unpack(rows, 4), values)
    # As in web/tests/manifest.test.mjs.
    assert places.pack(np.array([[5.0, 6.0]])).tolist() == 2 * [2 * [5, 5, 0, 0, 6, 6, 0, 0]]
    assert np.array_equal(places.pack(values[:1], 3)[1], 2 * [0, 0, 0, 0, 0, 1, 0, 0])
    assert Places.read({**places.to_json(), "shape": [2], "start": [0, 4]}, "input") == places
    for wrong in ({"batch": 3}, {"ciphertexts": 1}, {"parts": 3}, {"start": [0, 7]}):
        with pytest.raises(ValueError, match="input"):
            Places.read({**places.to_json(), "shape": [2], "start": [0, 4]} | wrong, "input")


def test_manifests_state_both_parts(residual: Case) -> None:
    """Clients of earlier versions, which would put all samples into one part, refuse its version."""
    manifests = [
        interface(program, residual.plan.parameters, None, "halves", ())
        for program in (residual.one, residual.joined)
    ]
    assert [json.loads(each.encoded)["version"] for each in manifests] == [4, 9]
    both = Manifest.read(manifests[1].encoded)
    assert (both.input.places.parts, both.output.places.parts) == (2, 2)
    values = residual.samples[: residual.joined.batch]
    packed = both.input.places.pack(both.input.entering(values))
    assert np.array_equal(packed, residual.joined.pack(values))
    other = json.loads(manifests[1].encoded)
    other["output"] |= {"parts": 1}
    with pytest.raises(FormatError, match="parts"):
        Manifest.read(json.dumps(other).encode())


def encrypted(case: Case, programs: Sequence[compiler.Program]) -> list[NDArray[np.float64]]:
    """Return the decrypted results of programs for their batch."""
    secret = kw.SecretKey.generate(case.plan.parameters, ENTROPY)
    generator = kw.KeyGenerator(secret, ENTROPY)
    encryptor, decryptor = kw.Encryptor(generator.public_key(), ENTROPY), kw.Decryptor(secret)
    out = []
    for program in programs:
        execution = KeyFrontier(program, case.plan.parameters, [case.plan]).execution
        inputs = encrypt_sample(program, encryptor, case.samples[: program.batch])
        results = backend(program, execution, generator).run(program, inputs)
        out.append(decrypt_result(program, decryptor, results, program.batch))
        error = np.abs(out[-1] - run_batch(program, case.samples[: program.batch])).max()
        assert error <= max(each.error_bound for each in results) * program.output.scale
        assert error < 2**-9
    return out


def test_encrypted_halves_have_the_results_of_the_program_for_one(residual: Case) -> None:
    one, joined = encrypted(residual, (residual.one, residual.joined))
    assert np.abs(joined[: residual.one.batch] - one).max() < 2**-9


def test_predicted_errors_are_those_of_a_run(residual: Case) -> None:
    """Within 2 bits."""
    program = residual.joined
    execution = KeyFrontier(program, residual.plan.parameters, [residual.plan]).execution
    samples = residual.samples[: program.batch]
    predicted = simulate(program, execution, samples, public=True)
    np.testing.assert_allclose(predicted.outputs, run_batch(program, samples), atol=1e-9)
    (measured,) = encrypted(residual, [program])
    ratio = np.abs(measured - predicted.outputs).mean() / np.abs(predicted.noisy - predicted.outputs).mean()
    assert 1 / 4 < ratio < 4


def test_imaginary_parts_of_errors_add_to_the_other_half(
    residual: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of b, which has 64 times the error of a, when both are joined: as in a run, unless they are lost."""
    given = residual.one
    layout = Layout(given.slots, given.slots, np.arange(given.slots, dtype=np.int32), batch=2, parts=2)
    steps = (
        Instruction("input", 0, (), 2),
        Instruction("input", 1, (), 2, 1),
        Instruction("linear_transform", 2, (1,), 1),
        Instruction("drop_level", 3, (0,), 1),
        Instruction("join", 4, (3, 2), 1),
        Instruction("conjugate", 5, (4,), 1),
        Instruction("real", 6, (4, 5), 1),
        Instruction("imaginary", 7, (4, 5), 1),
    )
    factor = DiagonalMatrix(given.slots, ({0: np.full(given.slots, 64.0)},), 1)
    program = replace(
        given,
        input=ProgramInput((given.slots,), layout, 2),
        output=ProgramOutput((given.slots,), layout, 1, (6, 7)),
        instructions=steps,
        operands=replace(given.operands, transforms=(factor,), vectors=(), polynomials=()),
        layers=(),
        ranges=(),
    )
    validate(program)
    samples = np.random.default_rng(3).uniform(-1, 1, (2, given.slots))
    execution = KeyFrontier(program, residual.plan.parameters, [residual.plan]).execution

    def first() -> float:
        predicted = simulate(program, execution, samples, public=True)
        return float(np.abs(predicted.noisy - predicted.outputs)[:, 0].mean())

    (measured,) = encrypted(replace(residual, samples=samples), [program])
    complete = first()
    assert 1 / 4 < np.abs(measured - run_batch(program, samples))[0].mean() / complete < 4
    plain = SimulatedBackend.join

    def joined(own: SimulatedBackend, *parts: SimulatedCiphertext) -> SimulatedCiphertext:
        a, b = (as_ciphertext(each) for each in parts)
        return plain(own, replace(a, values=a.values.real), replace(b, values=b.values.real))

    monkeypatch.setattr(SimulatedBackend, "join", joined)
    assert first() < complete / 16
