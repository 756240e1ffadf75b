"""Program files: a round trip preserves everything, damage is refused, files are written atomically."""

import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.errors import FormatError
from keywright.program.file import storage
from keywright.program.operands.diagonals import Diagonals, table_of
from keywright.runtime import run_clear
from onnx import helper

Build = Callable[..., onnx.ModelProto]
Edit = Callable[[dict[str, bytes]], None]
METHODS = {"sigmoid": "chebyshev:7"}


@pytest.fixture(scope="module")
def program(build: Build) -> compiler.Program:
    node = helper.make_node
    model = build(
        [node("MatMul", ["x", "w"], ["h"]), node("Sigmoid", ["h"], ["s"]), node("MatMul", ["s", "v"], ["y"])],
        (6,),
        {"w": np.tri(6, 4, dtype=np.float32), "v": np.tri(4, 3, dtype=np.float32)},
    )
    samples = np.random.default_rng(1).normal(size=(20, 6))
    return compiler.compile_program(
        model, compiler.Target(slots=4, levels=9), compiler.Fit(calibration=samples, activations=METHODS)
    )


@pytest.fixture
def stored(program: compiler.Program, tmp_path: Path) -> Path:
    path = tmp_path / "network.kwp"
    compiler.save(program, path)
    return path


def rewrite(path: Path, edit: Edit) -> None:
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    edit(entries)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)


def edit_description(**changes: object) -> Edit:
    def edit(entries: dict[str, bytes]) -> None:
        description = json.loads(entries["program.json"])
        assert changes.keys() <= description.keys()
        entries["program.json"] = json.dumps(description | changes).encode()

    return edit


def test_round_trip(program: compiler.Program, stored: Path) -> None:
    loaded = compiler.load(stored)
    assert loaded.instructions == program.instructions
    assert loaded.key_switches == program.key_switches
    assert loaded.fit_report == program.fit_report is not None
    assert loaded.ranges == program.ranges != ()
    assert loaded.output.scale == program.output.scale > 1
    x = np.linspace(-1, 1, 6)
    assert np.array_equal(run_clear(loaded, x), run_clear(program, x))
    again = stored.with_name("again.kwp")
    compiler.save(loaded, again)
    with zipfile.ZipFile(stored) as first, zipfile.ZipFile(again) as second:
        assert first.namelist() == second.namelist()
        assert all(first.read(name) == second.read(name) for name in first.namelist())


def test_a_changed_byte_is_refused_or_changes_nothing(program: compiler.Program, stored: Path) -> None:
    """Some bytes of a zip archive mean nothing (times, attributes); every other one is covered by a check."""
    original = stored.read_bytes()
    refused = 0
    for offset in range(len(original)):
        damaged = bytearray(original)
        damaged[offset] ^= 0x55
        stored.write_bytes(damaged)
        try:
            loaded = compiler.load(stored)
        except FormatError:
            refused += 1
            continue
        assert loaded.instructions == program.instructions
        for mine, theirs in zip(loaded.operands.vectors, program.operands.vectors, strict=True):
            assert np.array_equal(mine, theirs)
        for mine_t, theirs_t in zip(loaded.operands.transforms, program.operands.transforms, strict=True):
            assert all(
                np.array_equal(mine_t.diagonals[k][r], theirs_t.diagonals[k][r])
                for k, diagonals in enumerate(theirs_t.diagonals)
                for r in diagonals
            )
    assert refused > len(original) / 2


def test_truncation_is_refused(stored: Path) -> None:
    original = stored.read_bytes()
    for length in range(0, len(original), 7):
        stored.write_bytes(original[:length])
        with pytest.raises(FormatError, check=lambda error: error.code == "program"):
            compiler.load(stored)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"format": "other"}, "format 'other'"),
        ({"version": 6}, "version 6; this release reads keywright-program 7"),
        ({"version": 8}, "version 8"),
        ({"input_range": [1.0, 1.0]}, "inputs from 1"),
        ({"input_range": [-1.0, float("nan")]}, "not a finite number"),
        ({"input_range": [-1.0]}, "two numbers"),
        ({"input_scale": 3.0}, "not a power of two"),
        ({"input_scale": -2.0}, "not a power of two"),
        ({"input_scale": float("inf")}, "not a finite number"),
        ({"slots": 3}, "power of two"),
        ({"slots": 1 << 40}, "whole number"),
        ({"slots": 8}, "a transform of 4 slots in a ring of 8"),
        ({"input_shape": [1 << 30]}, "holds|bytes"),
        ({"output_scale": 0.5}, "output_scale"),
        ({"output_scale": float("inf")}, "not a finite number"),
        ({"outputs": []}, "no outputs|ciphertexts"),
        ({"outputs": [0]}, r"at level \d instead of \d"),
        ({"output_level": 1}, r"at level \d instead of 1"),
        ({"input_level": 3}, r"an input at level \d instead of 3"),
        ({"vectors": []}, "vector 0 does not exist"),
        ({"vectors": [8]}, "must be a power of two up to 4"),
        ({"vectors": [2]}, "at most 2 numbers"),
        ({"input_log_n": 20}, r"ring of degree 2\^20; degrees are 2\^3 to 2\^17"),
        ({"input_log_n": 2}, "ring"),
        ({"transforms": []}, "transform 0 does not exist"),
        ({"polynomials": []}, "polynomial 0 does not exist"),
        ({"polynomials": [{"basis": "legendre", "coefficients": [1.0, 2.0]}]}, "basis"),
        ({"polynomials": [{"basis": "monomial", "coefficients": [1.0, float("nan")]}]}, "finite"),
        ({"instructions": [["input", 0, [], 5, 0], ["exec", 1, [0], 5, 0]]}, "operation"),
        ({"instructions": [["add", 0, [1, 2], 5, 0]]}, "before it is computed"),
        ({"instructions": 7}, "not a readable program"),
    ],
)
def test_inconsistent_descriptions(stored: Path, changes: dict[str, object], word: str) -> None:
    rewrite(stored, edit_description(**changes))
    with pytest.raises(FormatError, match=word, check=lambda error: error.code == "program") as refused:
        compiler.load(stored)
    says_what_to_do = "Compile the model again" in str(refused.value)
    assert says_what_to_do == ("inconsistent program" in str(refused.value))


def npy(array: np.ndarray, *, pickled: bool = False) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=pickled)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "word"),
    [
        ("vectors/0.npy", npy(np.asarray([1, "x", None, 2], object), pickled=True), "real numbers"),
        ("vectors/0.npy", npy(np.full(4, np.inf)), "finite"),
        ("vectors/0.npy", npy(np.zeros(4, np.float32)), "float32"),
        ("vectors/0.npy", npy(np.zeros(5)), "at most 4 numbers"),
        ("vectors/0.npy", npy(np.zeros(1 << 12)), "larger than"),
        ("input.npy", npy(np.zeros(6, np.int32)), "twice"),
        ("output.npy", npy(np.asarray([0, 1, 9], np.int32)), "ciphertexts"),
        ("output.npy", npy(np.asarray([0, -1, 2], np.int32)), "negative"),
    ],
)
def test_foreign_arrays(stored: Path, name: str, data: bytes, word: str) -> None:
    rewrite(stored, lambda entries: entries.update({name: data}))
    with pytest.raises(FormatError, match=word, check=lambda error: error.code == "program"):
        compiler.load(stored)


def test_missing_entries(stored: Path) -> None:
    with zipfile.ZipFile(stored) as archive:
        names = archive.namelist()
    original = stored.read_bytes()
    for name in names:
        stored.write_bytes(original)
        rewrite(stored, lambda entries, name=name: entries.pop(name))  # type: ignore[misc]
        with pytest.raises(FormatError, check=lambda error: error.code == "program"):
            compiler.load(stored)


def test_size_is_bounded_before_reading(stored: Path) -> None:
    with pytest.raises(FormatError, match="more than 100 bytes", check=lambda error: error.code == "program"):
        storage.load(stored, max_bytes=100)


@pytest.fixture(scope="module")
def wide(build: Build) -> compiler.Program:
    """With 256 diagonals of 256 values, half a megabyte that packs well."""
    weights = {"w": np.resize([1, 2, 3], (256, 256)).astype(np.float32)}
    model = build([helper.make_node("MatMul", ["x", "w"], ["y"])], (256,), weights)
    return compiler.compile_program(model, compiler.Target(slots=256, levels=1))


def test_equal_values_of_a_batch_are_stored_once(build: Build, tmp_path: Path) -> None:
    weights = {"w": np.random.default_rng(3).normal(size=(8, 8)).astype(np.float32)}
    model = build([helper.make_node("MatMul", ["x", "w"], ["y"])], (8,), weights)
    batched = compiler.compile_program(model, compiler.Target(slots=64, levels=1, batch=8))
    path = tmp_path / "batch.kwp"
    compiler.save(batched, path)
    with zipfile.ZipFile(path) as archive:
        description = json.loads(archive.read("program.json"))
        values = np.load(io.BytesIO(archive.read("transforms/0.0.npy")))
    entry = description["transforms"][0]["inputs"][0]
    assert (description["version"], entry["copies"]) == (storage.VERSION, 8)
    assert values.shape == (len(entry["steps"]), entry["period"] // 8)
    loaded = compiler.load(path)
    for own, read in zip(batched.operands.transforms, loaded.operands.transforms, strict=True):
        assert np.array_equal(table_of(own.diagonals[0]), table_of(read.diagonals[0]))
    assert storage.digest(loaded) == storage.digest(batched)
    x = np.random.default_rng(4).normal(size=(8, 8))
    assert np.allclose(run_clear(loaded, x), x @ weights["w"])

    def edit(entries: dict[str, bytes]) -> None:
        entry["copies"] = 2 * entry["period"]
        entries["program.json"] = json.dumps(description).encode()

    rewrite(path, edit)
    with pytest.raises(FormatError, match="copies", check=lambda error: error.code == "program"):
        compiler.load(path)


def test_unpacked_arrays_are_bounded_before_reading(wide: compiler.Program, tmp_path: Path) -> None:
    path = tmp_path / "wide.kwp"
    compiler.save(wide, path)
    needed = 256 * 256 * 8 + 2 * 256 * 4
    assert path.stat().st_size < needed // 8
    assert storage.load(path, max_bytes=needed).instructions == wide.instructions
    with pytest.raises(
        FormatError, match=f"more than {needed - 1} bytes", check=lambda error: error.code == "program"
    ):
        storage.load(path, max_bytes=needed - 1)


def test_a_loaded_program_holds_its_file_and_not_its_diagonals(
    wide: compiler.Program, tmp_path: Path
) -> None:
    path = tmp_path / "wide.kwp"
    compiler.save(wide, path)
    Diagonals.release()
    tracemalloc.start()
    try:
        loaded = compiler.load(path)
        Diagonals.release()
        held, _ = tracemalloc.get_traced_memory()
        x = np.linspace(-1, 1, 256)
        path.unlink()  # what was loaded does not need it
        assert np.array_equal(run_clear(loaded, x), run_clear(wide, x))
    finally:
        tracemalloc.stop()
    assert held < loaded.operands.transforms[0].bytes / 4


@pytest.mark.parametrize("steps", [[0, 2, 1], [0, 0, 1], [0, 1, 1]])
def test_diagonals_ascend(stored: Path, steps: list[int]) -> None:
    def edit(entries: dict[str, bytes]) -> None:
        description = json.loads(entries["program.json"])
        entry = description["transforms"][0]["inputs"][0]
        assert entry["steps"][:3] == [0, 1, 2]
        entry["steps"][:3] = steps
        entries["program.json"] = json.dumps(description).encode()

    rewrite(stored, edit)
    with pytest.raises(FormatError, match="ascending", check=lambda error: error.code == "program"):
        compiler.load(stored)


def test_foreign_and_missing_files(tmp_path: Path) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(FormatError, match="foreign", check=lambda error: error.code == "program"):
        compiler.load(path)
    with pytest.raises(FileNotFoundError):
        compiler.load(tmp_path / "missing")


def test_an_interrupted_write_leaves_the_old_file(
    program: compiler.Program, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stored.read_bytes()

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(np.lib.format, "write_array", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compiler.save(program, stored)
    assert stored.read_bytes() == before
    assert list(stored.parent.iterdir()) == [stored]


def bootstrap(slots: int, input_level: int, output_level: int, preset: object) -> dict[str, object]:
    levels = {"input_level": input_level, "output_level": output_level}
    return {"bootstraps": [{"slots": slots, **levels, "seconds": 1.0, "preset": preset, "input_log_n": 0}]}


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"layers": [["name", "linear", 1, 0, 0, 0.1, 3, 2]]}, "a layer of instructions"),
        ({"layers": [["name", "linear", 1, 0, 0, 0.1, 0, 1 << 20]]}, "a layer of instructions"),
        ({"layers": [["name", "linear", 1, 0, 0, float("nan"), 0, 1]]}, "not a finite number"),
        ({"layers": [[1, "linear", 1, 0, 0, 0.1, 0, 1]]}, "name of a layer is 1"),
        ({"layers": [["name"]]}, "not a readable program"),
        ({"bootstraps": [{"slots": 4}]}, "not a readable program"),
        (bootstrap(4, 3, 3, ""), "gains no level"),
        (bootstrap(8, 1, 3, ""), "a bootstrap of 8 slots, and its ring has 4"),
        (bootstrap(4, 1, 3, 7), "preset of a bootstrap is 7"),
    ],
)
def test_inconsistent_layers_and_bootstraps(stored: Path, changes: dict[str, object], word: str) -> None:
    rewrite(stored, edit_description(**changes))
    with pytest.raises(FormatError, match=word, check=lambda error: error.code == "program") as refused:
        compiler.load(stored)
    says_what_to_do = "Compile the model again" in str(refused.value)
    assert says_what_to_do == ("inconsistent program" in str(refused.value))


def test_a_changed_header_of_an_array_is_refused(stored: Path) -> None:
    """One bit of each byte, in an archive whose checksums are right."""
    with zipfile.ZipFile(stored) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    original, refused = entries["vectors/0.npy"], 0
    for place in range(128):
        data = bytearray(original)
        data[place] ^= 1 << place % 8
        rewrite(stored, lambda entries, data=data: entries.update({"vectors/0.npy": bytes(data)}))  # type: ignore[misc]
        try:
            compiler.load(stored)
        except FormatError:
            refused += 1
    assert refused >= 70


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_methods_of_packing_are_refused(stored: Path, method: int) -> None:
    with zipfile.ZipFile(stored) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(stored, "w", method) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    with pytest.raises(
        FormatError, match="compressed by method", check=lambda error: error.code == "program"
    ):
        compiler.load(stored)
