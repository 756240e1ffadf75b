"""Program files: a zip of one JSON description and numpy arrays, without pickle.

``program.json`` lists everything but the arrays; ``transforms/T.K.npy`` holds the diagonals of input K of
transform T by rows, with one of each ``copies`` equal values, ``vectors/V.npy`` vector V, ``input.npy`` and
``output.npy`` the positions of the layouts. Sizes follow from the description and are checked before an array
is read.
"""

import dataclasses
import hashlib
import io
import json
import math
import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keywright._files import replacing
from keywright._reading.arrays import read_array, require_file
from keywright._reading.documents import Limits, read_json
from keywright._reading.records import read_record, whole
from keywright.errors.choices import require_integer
from keywright.errors.engine import FormatError
from keywright.program.client.last_steps import ClientPart
from keywright.program.instructions import Instruction, Layer
from keywright.program.interface import ProgramInput, ProgramOutput
from keywright.program.operands.bootstraps import Bootstrap
from keywright.program.operands.diagonals import DiagonalMatrix, Diagonals, copies_of, distinct_of, period_of
from keywright.program.operands.layout import Layout, next_power_of_two
from keywright.program.operands.operands import Operands
from keywright.program.operands.polynomials import PolynomialSpec
from keywright.program.program import Program

from .codecs import codecs_to_json, read_divisor, read_interval, read_normalisation, read_steps
from .records import read_range, read_report
from .validation import validate

FORMAT = "keywright-program"
VERSION = 7
JOINED_VERSION = 8
"""Of programs for joined halves, whose operations earlier versions do not know."""
LIMITS = Limits(80 << 20, 1 << 22)
"""Of ``program.json``: a transformer of 32 tokens has 8,000 values, and ranges of slots in use up to a
hundred thousand each. Tables of first steps are bytes in base64."""
MAX_BYTES = 8 << 30
MAX_ENTRIES = 1 << 17
"""Of the archive, each of which takes 46 bytes there and ten times as much in memory."""
NPY_HEADER_BYTES = 4096
END, END_BYTES = b"PK\5\6", 22
"""The beginning of the last record of an archive, and its length without a comment."""

UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    OSError,
    EOFError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    RuntimeError,
)
"""Exceptions of zipfile and json for damaged data: a RuntimeError if it claims to be encrypted, or is nested
too deeply."""


def save(program: Program, path: str | Path) -> None:
    """Write a program to one file, atomically. The bytes depend on nothing but the program."""
    with replacing(Path(path)) as file, zipfile.ZipFile(file, "w") as archive:
        stored = _description(program) | {"created": program.created}
        with archive.open(_written("program.json"), "w") as entry:
            entry.write(json.dumps(stored).encode())
        for name, array in _arrays(program):
            with archive.open(_written(name), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


def _written(name: str) -> zipfile.ZipInfo:
    """Return an entry with the least compression and the first date of archives: by default, it has the time
    of writing."""
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    setattr(entry, "compress_level" if sys.version_info >= (3, 13) else "_compresslevel", 1)
    return entry


def load(path: str | Path, max_bytes: int = MAX_BYTES) -> Program:
    """Read a program and check that it is consistent, so that it cannot fail during a run.

    The file stays compressed in memory. Diagonals are decompressed one table at a time, to check them and
    whenever they are used.

    Args:
        path: of the file.
        max_bytes: bound on the bytes of the file, and of the decompressed arrays.

    Raises:
        FormatError: not a program file, another version, damaged, inconsistent, or too large.
        FormatError: a folder, a pipe or a device.
        FileNotFoundError: there is no such file.
        ParameterError: the bound is not an integer.
    """
    require_file(path)
    require_integer("max_bytes", max_bytes)
    with Path(path).open("rb") as file:
        if os.fstat(file.fileno()).st_size > max_bytes:
            raise FormatError(f"{path}: {_too_large(max_bytes)}", code="program")
        data = file.read()
        try:
            if data.count(b"PK\1\2") > MAX_ENTRIES:
                raise FormatError(f"it has more than {MAX_ENTRIES} entries", code="program")
            reader = _Reader(_archive(data), max_bytes)
            program = _read(reader)
            validate(program)
            reader.require_all_read()
        except FormatError as error:
            raise FormatError(f"{path}: {error}", code="program") from error
        except UNREADABLE as error:
            raise FormatError(f"{path}: not a readable program file: {error}", code="program") from error
    return program


def digest(program: Program) -> str:
    """Return the SHA-256, in hexadecimal, of all contents that `save` writes but the time of compilation,
    independent of the file's encoding."""
    sha = hashlib.sha256(json.dumps(_description(program)).encode())
    for name, array in _arrays(program):
        sha.update(name.encode() + np.ascontiguousarray(array).tobytes())
    return sha.hexdigest()


def _description(program: Program) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION if program.input.layout.parts == 1 else JOINED_VERSION,
        "slots": program.slots,
        "batch": program.batch,
        "input_shape": program.input.shape,
        "output_shape": program.output.shape,
        "input_period": program.input.layout.period,
        "output_period": program.output.layout.period,
        "input_range": program.input.range,
        "input_scale": program.input.scale,
        "output_scale": program.output.scale,
        "input_level": program.input.level,
        "output_level": program.output.level,
        "outputs": program.output.ciphertexts,
        "instructions": [
            [step.opcode, step.result, step.operands, step.level, step.argument]
            for step in program.instructions
        ],
        "input_log_n": program.input.log_n,
        "transforms": [
            {
                "slots": transform.slots,
                "n1": transform.n1,
                "inputs": [
                    {
                        "steps": sorted(diagonals),
                        "period": period_of(diagonals),
                        "copies": copies_of(diagonals),
                    }
                    for diagonals in transform.diagonals
                ],
            }
            for transform in program.operands.transforms
        ],
        "vectors": [len(vector) for vector in program.operands.vectors],
        "polynomials": [
            {"basis": polynomial.basis, "coefficients": polynomial.coefficients.tolist()}
            for polynomial in program.operands.polynomials
        ],
        "fit_report": None if program.fit_report is None else program.fit_report.to_json(),
        "ranges": [
            dataclasses.astuple(range_)[: None if range_.total else -1 if range_.slots else -2]
            for range_ in program.ranges
        ],
        "bootstraps": [
            {name: value for name, value in dataclasses.asdict(each).items() if value or name != "pairs"}
            for each in program.operands.bootstraps
        ],
        "layers": [dataclasses.astuple(layer) for layer in program.layers],
        "client_part": None,
        **({} if program.input.layout.parts == 1 else {"parts": program.input.layout.parts}),
    } | codecs_to_json(program.input, program.output)


def _arrays(program: Program) -> Iterator[tuple[str, NDArray[np.generic]]]:
    """Yield all arrays by name; diagonals are made one table at a time."""
    yield "input.npy", program.input.layout.positions
    yield "output.npy", program.output.layout.positions
    for number, transform in enumerate(program.operands.transforms):
        for operand, diagonals in enumerate(transform.diagonals):
            yield f"transforms/{number}.{operand}.npy", distinct_of(diagonals)
    for number, vector in enumerate(program.operands.vectors):
        yield f"vectors/{number}.npy", vector


def _archive(data: bytes) -> zipfile.ZipFile:
    """Return the archive in a file that has no other bytes before or behind it."""
    archive = zipfile.ZipFile(io.BytesIO(data))
    begin = min((entry.header_offset for entry in archive.infolist()), default=0)
    if begin or archive.comment or not data.endswith(END, 0, len(data) - END_BYTES + len(END)):
        raise FormatError(
            "it has bytes before or behind the program; get it again, or compile the model again",
            code="program",
        )
    return archive


def _too_large(budget: int) -> str:
    return f"the file or its arrays take more than {budget} bytes; raise max_bytes if that is intended"


class _Reader:
    """Reads arrays of known shapes from an archive in memory, within a budget of bytes."""

    def __init__(self, archive: zipfile.ZipFile, budget: int) -> None:
        self.archive, self.budget, self.left = archive, budget, budget
        self._read = ["program.json"]

    def require_all_read(self) -> None:
        """Refuse an archive with entries that the program does not have, or has twice."""
        names = self.archive.namelist()
        if sorted(names) != sorted(self._read):
            others = [name for name in names if name not in self._read] or names
            raise FormatError(
                f"it has an entry {others[0]!r:.60} that the program does not have, or has twice",
                code="program",
            )

    def array(self, name: str, shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
        self._spend(shape, dtype)
        self._read.append(name)
        return _array(self.archive, name, shape, dtype)

    def diagonals(self, name: str, steps: list[int], period: int, copies: int) -> Diagonals:
        """Return diagonals that stay compressed in the archive and are read whenever they are used."""
        shape, archive = (len(steps), period // copies), self.archive
        self._spend((len(steps), period), np.float64)
        self._read.append(name)
        if any(low >= high for low, high in pairwise(steps)):
            raise FormatError(f"the diagonals of {name} are not in ascending order", code="program")

        return Diagonals(steps, period, lambda: _array(archive, name, shape, np.float64), copies)

    def _spend(self, shape: tuple[int, ...], dtype: type[np.generic]) -> None:
        self.left -= math.prod(shape) * np.dtype(dtype).itemsize
        if self.left < 0:
            raise FormatError(_too_large(self.budget), code="program")


def _array(
    archive: zipfile.ZipFile, name: str, shape: tuple[int, ...], dtype: type[np.generic]
) -> NDArray[Any]:
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if archive.getinfo(name).file_size > size + NPY_HEADER_BYTES:
        raise FormatError(f"{name} is larger than the {size} bytes of its shape {shape}", code="program")
    array = read_array(_entry(archive, name), math.prod(shape))
    if array.shape != shape or array.dtype != dtype:
        raise FormatError(
            f"{name} holds {array.dtype} {array.shape}, expected {np.dtype(dtype)} {shape}", code="program"
        )
    return array


def _entry(archive: zipfile.ZipFile, name: str) -> bytes:
    """Read an entry that is stored or compressed with `save`'s method. Other decoders raise arbitrary
    exceptions and allocate as much memory as their data demands."""
    if archive.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise FormatError(
            f"{name} is compressed by method {archive.getinfo(name).compress_type}, which is not supported",
            code="program",
        )
    with archive.open(name) as entry:
        # Without a bound, two gigabytes are decompressed at a time, whatever size is stated.
        return entry.read(archive.getinfo(name).file_size)


def _read(reader: _Reader) -> Program:
    archive = reader.archive
    if archive.getinfo("program.json").file_size > LIMITS.bytes:
        raise FormatError(f"program.json is larger than {LIMITS.bytes} bytes", code="program")
    data = read_json(_entry(archive, "program.json"), LIMITS)
    version = JOINED_VERSION if "parts" in data else VERSION
    if (data["format"], data["version"]) != (FORMAT, version):
        raise FormatError(
            f"format {data['format']!r:.60} version {data['version']!r:.20}; this release reads {FORMAT} "
            f"{VERSION}, and {JOINED_VERSION} of joined halves",
            code="program",
        )
    slots = _power_of_two(data["slots"], 1 << 17, "slots")
    parts = _power_of_two(data.get("parts", 1), 2, "parts")
    batch = _power_of_two(data["batch"], slots * parts, "batch")
    shapes = [tuple(_integer(size, "size") for size in data[f"{end}_shape"]) for end in ("input", "output")]
    steps = read_steps(data)
    steps.require_shape(shapes[0])
    sizes = [math.prod(shapes[0]) if steps.binning is None else steps.binning.bits, math.prod(shapes[1])]
    layouts = [
        Layout(
            slots,
            _power_of_two(data[f"{end}_period"], slots, "period"),
            reader.array(f"{end}.npy", (size,), np.int32),
            batch=batch,
            parts=parts,
        )
        for end, size in zip(("input", "output"), sizes, strict=True)
    ]
    part = data["client_part"]
    return Program(
        input=ProgramInput(
            shapes[0],
            layouts[0],
            _integer(data["input_level"], "input_level"),
            range=read_interval(data["input_range"]),
            scale=read_divisor(data["input_scale"]),
            normalisation=read_normalisation(data, "input", sizes[0]),
            steps=steps,
            log_n=_integer(data["input_log_n"], "input_log_n"),
        ),
        output=ProgramOutput(
            shapes[1],
            layouts[1],
            _integer(data["output_level"], "output_level"),
            tuple(_integer(ct, "output") for ct in data["outputs"]),
            scale=_scale(data["output_scale"]),
            normalisation=read_normalisation(data, "output", sizes[1]),
            image=read_interval(data.get("output_image"), "outputs"),
            client_part=None if part is None else ClientPart.read(part, sizes[1]),
        ),
        instructions=tuple(
            read_record(Instruction, entry, "an instruction") for entry in data["instructions"]
        ),
        operands=_operands(reader, data, slots),
        layers=tuple(read_record(Layer, entry, "a layer") for entry in data["layers"]),
        ranges=tuple(map(read_range, data["ranges"])),
        fit_report=None if data["fit_report"] is None else read_report(data["fit_report"]),
        created=whole(data.get("created", 0), "created", 0),
    )


def _operands(reader: _Reader, data: dict[str, Any], slots: int) -> Operands:
    transforms = []
    for number, transform in enumerate(data["transforms"]):
        held, diagonals = _power_of_two(transform["slots"], slots, "slots of a transform"), []
        for operand, entry in enumerate(transform["inputs"]):
            steps = [_integer(step, "step") for step in entry["steps"]]
            period = _power_of_two(entry["period"], held, "period")
            copies = _power_of_two(entry["copies"], period, "copies")
            diagonals.append(reader.diagonals(f"transforms/{number}.{operand}.npy", steps, period, copies))
        transforms.append(DiagonalMatrix(held, tuple(diagonals), _integer(transform["n1"], "n1")))
    lengths = [_power_of_two(length, slots, "length of a vector") for length in data["vectors"]]
    return Operands(
        tuple(transforms),
        tuple(
            reader.array(f"vectors/{number}.npy", (length,), np.float64)
            for number, length in enumerate(lengths)
        ),
        tuple(
            PolynomialSpec(np.asarray(entry["coefficients"], np.float64), entry["basis"])
            for entry in data["polynomials"]
        ),
        tuple(read_record(Bootstrap, entry, "a bootstrap") for entry in data["bootstraps"]),
    )


def _integer(value: object, name: str) -> int:
    return whole(value, name, 0, (1 << 31) - 1)


def _scale(value: object) -> float:
    if not isinstance(value, float) or not 1.0 <= value < math.inf:
        raise FormatError(
            f"output_scale must be a finite number of at least 1, got {value!r}", code="program"
        )
    return value


def _power_of_two(value: object, bound: int, name: str) -> int:
    number = _integer(value, name)
    if not 1 <= number <= bound or next_power_of_two(number) != number:
        raise FormatError(f"{name} must be a power of two up to {bound}, got {number}", code="program")
    return number
