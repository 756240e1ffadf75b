"""JSON of other sides: what a reader allocates is bounded by limits that each place states."""

from __future__ import annotations

import importlib
import json
import pkgutil
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright._reading.documents import MAX_DIGITS, OWN, Limits, read_json
from keywright._reading.sealed import checked
from keywright.client import RemoteModel
from keywright.errors import FormatError, KeywrightError
from keywright.federated.array_layout import ArrayLayout
from keywright.model.exchange.identity import IDENTITY, Identity
from keywright.model.folder.description import Description
from keywright.model.served.manifest import Manifest
from keywright.plan import Workload
from keywright.plan.cost.calibration import Calibration
from keywright.plan.keys import plan_file
from keywright.program.client.first_steps import BEFORE
from keywright.program.client.small_model import MAX_VALUES, SmallModel
from keywright.program.client.wire_format import require_bounded
from keywright.program.file.storage import load
from keywright.search.directory import HEAD, MAGIC, read_directories
from keywright.search.index import Index
from keywright.search.votes import Vote
from onnx import helper, numpy_helper
from tests.serve.hostile import answer, hostile

SMALL = Limits(1 << 20, 1 << 14)
MOST_BYTES = 1_300_000_000
"""Most memory that a document of another side may take."""


def listed(piece: bytes, values: int) -> bytes:
    """A list of copies of a value, whose commas and brackets count for ``values``."""
    return b"[" + b",".join([piece] * max(1, (SMALL.values - 1) // values)) + b"]"


HOSTILE = {
    "lists": listed(b"[]", 2),
    "objects": listed(b"{}", 2),
    "objects of one": listed(b'{"a":1}', 2),
    "objects of lists": listed(b'{"a":[]}', 3),
    "texts": b"[" + b",".join(b'"x%d"' % number for number in range(SMALL.values - 2)) + b"]",
    "names": b"{" + b",".join(b'"x%d":1' % number for number in range(SMALL.values - 2)) + b"}",
    "numbers": b"[" + b",".join(b"%d.5" % number for number in range(SMALL.values - 2)) + b"]",
    "escapes": b'["' + b"\\u4e00" * (SMALL.bytes // 6 - 2) + b'"]',
    "short escapes": b'["' + b"ab\\n" * (SMALL.bytes // 4 - 2) + b'"]',
    "one wide character": b'["\\ud83d\\ude00' + b"x" * (SMALL.bytes - 20) + b'"]',
    "many wide characters": b'["' + "\U0001f600".encode() * (SMALL.bytes // 16 - 2) + b'"]',
}
"""Documents within the limits that take the most memory for each byte or value."""

BEYOND = {
    "bytes": b" " * SMALL.bytes + b"1",
    "wide characters": b'["' + "\U0001f600".encode() + b"x" * (SMALL.bytes // 2) + b'"]',
    "lists": b"[" + b"[]," * SMALL.values + b"1]",
    "numbers": b"[" + b"1," * SMALL.values + b"1]",
    "brackets that close": b"]" * (SMALL.values + 1),
    "quotes": b'"' * (4 * SMALL.values + 1),
    "depth": b"[" * 33 + b"]" * 33,
    "depth behind texts": b'["\\\\", "\\"[", "\\\\\\"]", ' + b'{"a":[' * 16 + b"]}" * 16 + b"]",
    "digits": b"1" * (MAX_DIGITS + 1),
    "digits of a fraction": b"1." + b"1" * MAX_DIGITS,
    "infinity": b"1e999",
    "a constant": b"[NaN]",
    "a name twice": b'[{"a": {"b": 1, "\\u0062": 1}}]',
    "no JSON": b'{"a":',
    "another encoding": "[1]".encode("utf-16"),
}


def peak(call: Callable[[], object]) -> tuple[int, object]:
    """Bytes that a call allocates at most, and its result or its refusal."""
    tracemalloc.start()
    try:
        try:
            result: object = call()
        except (KeywrightError, ValueError) as error:
            result = error
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", HOSTILE)
def test_documents_take_no_more_memory_than_their_limits_say(name: str) -> None:
    taken, result = peak(lambda: read_json(HOSTILE[name], SMALL))
    assert not isinstance(result, Exception)
    assert taken < SMALL.peak


@pytest.mark.parametrize("name", BEYOND)
def test_documents_beyond_the_limits_are_refused_before_they_are_read(name: str) -> None:
    taken, result = peak(lambda: read_json(BEYOND[name], SMALL))
    assert type(result) is ValueError, result
    assert len(str(result)) < 200
    assert taken < 6 * max(len(BEYOND[name]), 4096)


@pytest.mark.parametrize(
    "value",
    [
        {"labels": ["[0, 1)", '"{', "\\", '\\"[', "["] * 50},
        [[[[1.5, -3e-300]]], 10**500, None, True],
        "x\U0001f600" * 50,
        json.loads("[" * 32 + "]" * 32),
    ],
)
def test_honest_documents_are_read(value: object) -> None:
    """Brackets and quotes in texts are no depth."""
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        assert read_json(text, SMALL) == read_json(text.encode(), SMALL) == value


def modules() -> Iterator[ModuleType]:
    for module in pkgutil.walk_packages(kw.__path__, "keywright."):
        if not module.name.endswith("__main__"):
            try:
                yield importlib.import_module(module.name)
            except ImportError:
                continue


def test_every_place_states_limits_that_a_laptop_has() -> None:
    stated: dict[str, Limits] = {}
    for module in modules():
        for name, value in vars(module).items():
            if isinstance(value, Limits):
                stated[f"{module.__name__}.{name}"] = value
    assert len(stated) > 10
    for name, limits in stated.items():
        # A client's own state has shares and masks of all others.
        own = limits is OWN or name == "keywright.federated.client_state._LIMITS"
        assert own or limits.peak <= MOST_BYTES, name


LISTS = b"[" + b"[]," * 2_800_000 + b"1]"
"""Eight megabytes, of which a parser makes 250."""
DEEP = b'{"a":' * 100_000 + b"1" + b"}" * 100_000


def sized(value: bytes) -> bytes:
    """A field of some bytes, without its key."""
    size, digits = len(value), bytearray()
    while size > 127:
        digits.append(size & 127 | 128)
        size >>= 7
    return bytes([*digits, size]) + value


MESSAGES = {
    "nodes": b"\x0a\x00" * (2 << 20),
    "initializers": b"\x2a\x00" * (2 << 20),
    "attributes": b"\x0a" + sized(b"\x2a\x00" * (2 << 20)),
    "graphs in each other": b"\x0a" + sized(b"\x2a" + sized(b"\x32" + sized(b"\x2a\x00" * (1 << 20)))),
    "dimensions": b"\x2a" + sized(b"\x0a" + sized(b"\x01" * (8 << 20))),
}
"""Graphs of ONNX whose messages take far more memory than their bytes."""


@pytest.mark.parametrize("name", MESSAGES)
def test_steps_of_a_client_are_bounded_before_they_are_parsed(name: str) -> None:
    data = b"\x08\x08\x3a" + sized(MESSAGES[name])
    with pytest.raises(FormatError, match="more messages or values"):
        require(data)
    with pytest.raises(ValueError, match="more messages or values"):
        require_bounded(data, onnx.ModelProto.DESCRIPTOR)


def require(data: bytes) -> None:
    SmallModel(data, "the client's part", BEFORE, 48 << 20)


@pytest.mark.parametrize("data", [b"\x08", b"\x3a\x05\x0a", b"\x0b", b"\xff" * 11])
def test_steps_that_are_no_messages_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match="cannot be read"):
        require(data)


@pytest.mark.parametrize(("kind", "shapes"), [("ReduceProd", [(0, 1 << 40)]), ("ReduceL1", [(0, 1 << 40)])])
def test_operands_without_elements_make_no_large_results(kind: str, shapes: list[tuple[int, ...]]) -> None:
    names = [f"operand{number}" for number in range(len(shapes))]
    graph = helper.make_graph(
        [helper.make_node(kind, names, ["y"])],
        "empty",
        [],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [
            helper.make_tensor(name, onnx.TensorProto.FLOAT, shape, [])
            for name, shape in zip(names, shapes, strict=True)
        ],
    )
    model = SmallModel(helper.make_model(graph).SerializeToString(), "the client's part", BEFORE, 1 << 20)
    with pytest.raises(FormatError, match="too large"):
        model.run({})


def steps(kind: str) -> onnx.ModelProto:
    """Return small models whose values together are large: many results that later nodes read or that none
    does, and texts."""
    count, ends = 24, [helper.make_node("Identity", ["x"], ["y"])]
    constants = [
        numpy_helper.from_array(np.zeros(shape), name) for name, shape in (("a", (2048, 1)), ("b", (1, 2048)))
    ]
    nodes = [helper.make_node("Add", ["a", "b"], [f"t{number}"]) for number in range(count)]
    if kind == "read later":
        ends.append(helper.make_node("Sum", [f"t{number}" for number in range(count)], ["z"]))
    elif kind == "unread":
        nodes *= 40
    else:
        shapes = (("a", (256, 1)), ("b", (1, 256)))
        constants = [numpy_helper.from_array(np.zeros(shape, np.int64), name) for name, shape in shapes]
        constants.append(numpy_helper.from_array(np.array(["a" * (1 << 16)], object), "s"))
        case = {"case_change_action": "UPPER"}
        nodes = [
            helper.make_node("Add", ["a", "b"], ["i"]),
            helper.make_node("Gather", ["s", "i"], ["t"]),
            helper.make_node("StringNormalizer", ["t"], ["u"], **case),
        ]
    source, result = (helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, [2]) for name in "xy")
    graph = helper.make_graph([*nodes, *ends], "steps", [source], [result], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize("kind", ["read later", "unread", "texts"])
def test_values_of_steps_together_are_bounded(kind: str) -> None:
    allowed = BEFORE | {"Add", "Sum", "Identity"}
    model = SmallModel(steps(kind).SerializeToString(), "the client's part", allowed, 1 << 20)

    taken, refused = peak(lambda: model.run({"x": np.zeros(2)}))
    assert isinstance(refused, FormatError)
    assert "too large" in str(refused)
    # The values of one result and of all that are kept, in double precision, and the operands of an addition.
    assert taken <= 3 * 8 * MAX_VALUES


def in_folder(name: str, read: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    def reading(data: bytes, folder: Path) -> object:
        (folder / name).write_bytes(data)
        return read(folder)

    return reading


def program(data: bytes, folder: Path) -> object:
    with zipfile.ZipFile(folder / "program.kwp", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("program.json", data)
    return load(folder / "program.kwp")


def served(data: bytes, status: int) -> object:
    with hostile(lambda *_: answer(status, data)) as seen:
        return RemoteModel(seen.url)


PLACES: dict[str, Callable[[bytes, Path], object]] = {
    "a manifest": lambda data, folder: Manifest.read(data),
    "a served manifest": lambda data, folder: served(data, 200),
    "a refusal": lambda data, folder: served(data, 400),
    "a plan": in_folder("plan.json", lambda folder: plan_file.load(folder / "plan.json")),
    "a workload": lambda data, folder: Workload.from_json(data),
    "a calibration": in_folder("c.json", lambda folder: Calibration.load(folder / "c.json")),
    "a program": program,
    "a description": in_folder("model.json", Description.load),
    "an identity": in_folder(IDENTITY, lambda folder: Identity.load(folder, "request", 1)),
    "a layout": lambda data, folder: ArrayLayout.from_bytes(data),
    "a vote": lambda data, folder: Vote.from_bytes(data),
    "an index": in_folder("index.json", Index.load),
    "a directory": lambda data, folder: read_directories(checked(HEAD.pack(MAGIC, len(data), 0), data)),
}
"""Where a client reads JSON that another side has written."""


@pytest.mark.parametrize("data", [LISTS, DEEP], ids=["lists", "depth"])
@pytest.mark.parametrize("place", PLACES)
def test_no_place_reads_more_than_its_limits(place: str, data: bytes, tmp_path: Path) -> None:
    taken, result = peak(lambda: PLACES[place](data, tmp_path))
    assert isinstance(result, KeywrightError), result
    assert len(str(result)) < 600
    assert taken < 5 * len(data) + (4 << 20)


def test_an_entry_of_a_program_takes_no_more_than_it_states(tmp_path: Path) -> None:
    """A file of 1.5 megabytes that stated a kilobyte took two gigabytes."""
    path = tmp_path / "program.kwp"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("program.json", b" " * (100 << 20))
    data = bytearray(path.read_bytes())
    for place in (data.index(b"PK\3\4") + 22, data.rindex(b"PK\1\2") + 24):
        data[place : place + 4] = (1000).to_bytes(4, "little")
    path.write_bytes(data)
    taken, result = peak(lambda: load(path))
    assert isinstance(result, FormatError), result
    assert taken < 4 << 20
