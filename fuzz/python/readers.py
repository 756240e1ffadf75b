"""The fuzzed readers of the package, each as a function of arbitrary bytes.

A reader returns whether it accepted its input. It may raise errors of Keywright. Faults are all other
exceptions, a file that it opens elsewhere, and an accepted input that changes when it is written back.
"""

import io
import os
import resource
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from keywright import compiler
from keywright._reading.arrays import read_array
from keywright.commands.helpers.errors import CommandError
from keywright.commands.helpers.inputs import load_image
from keywright.compiler.front_ends.model_file import sample_shape
from keywright.errors import KeywrightError, ModelRefusedError
from keywright.federated.array_layout import ArrayLayout
from keywright.model import Model
from keywright.model.exchange.messages import Message
from keywright.model.folder.files import DESCRIPTION
from keywright.model.served.manifest import Manifest
from keywright.plan import Workload
from keywright.plan.cost.calibration import Calibration
from keywright.plan.keys import plan_file
from keywright.program.file import storage
from keywright.search import Vote
from keywright.search.directory import read_directories
from keywright.search.messages import read_answer
from keywright.serve.tenants.accounts import Accounts
from mutations import (
    Mutation,
    mutate_checked,
    mutate_json,
    mutate_onnx,
    mutate_plain,
    mutate_png,
    mutate_sealed,
    mutate_zip,
)

REFUSALS = (KeywrightError, CommandError)
"""Exceptions that a reader may raise."""
MEMORY = 2 << 30
"""Bytes by which an input may make the process grow: the largest image, as float64 and before conversion, has
1 GiB."""
MODEL_FOLDER = Path(__file__).with_name("model_folder")
"""A small model for thin clients, without its description."""
MAX_NUMBERS = 1 << 16
LARGEST = 1 << 15
"""Values of a tensor that exercises what was read."""


class FaultError(Exception):
    """A reader did something forbidden."""


@dataclass(frozen=True)
class Reader:
    """A reader under test.

    Attributes:
        read: returns whether it accepts.
        mutate: derives another input, so that most inputs have valid checksums.
        longest: maximum bytes of an input.
    """

    read: Callable[[bytes], bool]
    mutate: Mutation = mutate_plain
    longest: int = 1 << 14

    def run(self, data: bytes) -> bool:
        """Whether an input is accepted.

        Raises:
            FaultError: a fault occurred, or an error of another class.
        """
        try:
            with nothing_else_opened():
                return self.read(data)
        except REFUSALS as error:
            if not str(error):
                raise FaultError(f"{type(error).__name__} without a message") from error
            return False


TEMPORARY = tempfile.gettempdir()
READABLE = (TEMPORARY, str(MODEL_FOLDER), *sysconfig.get_paths().values(), *filter(None, sys.path))
WATCHED = ("open", "subprocess.Popen", "socket.connect", "pickle.find_class")
_watching = False


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if not _watching or event not in WATCHED:
        return
    if event == "open":
        path, mode = str(arguments[0]), arguments[1]
        # Modules are loaded on first use.
        read = mode in ("r", "rb", None) and path.startswith(READABLE)
        if isinstance(arguments[0], int) or read or path.startswith(TEMPORARY):
            return
    raise FaultError(f"{event} of {arguments[:2]!r:.200}")


sys.addaudithook(_watch)


@contextmanager
def nothing_else_opened() -> Iterator[None]:
    """Check that this block opens no files outside the temporary folder, except the interpreter's."""
    global _watching
    _watching = True
    try:
        yield
    finally:
        _watching = False


@contextmanager
def limited_memory() -> Iterator[None]:
    """Limit the growth of the process in this block to `MEMORY`: beyond, there is a `MemoryError`, which is a
    fault."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def require(condition: bool, what: str) -> None:
    """Raise `FaultError` unless a condition holds."""
    if not condition:
        raise FaultError(what)


@contextmanager
def file_of(data: bytes, suffix: str) -> Iterator[Path]:
    """Yield a file with these bytes."""
    path = Path(TEMPORARY) / f"keywright-fuzz-{os.getpid()}{suffix}"
    path.write_bytes(data)
    try:
        yield path
    finally:
        path.unlink()


def _program(data: bytes) -> bool:
    with file_of(data, ".kwp") as path:
        program = compiler.load(path)
        compiler.save(program, path)
        again = compiler.load(path)
    require(storage.digest(again) == storage.digest(program), "a program changed when it was saved")
    require(
        again.key_switches == program.key_switches, "the key switches of a program changed when it was saved"
    )
    return True


def _manifest(data: bytes) -> bool:
    manifest = Manifest.read(data)
    require(manifest.encoded == data, "a manifest has two encodings")
    for places in (manifest.input.places, manifest.output.places):
        taken = len(places.start) * places.repeat * places.batch
        if max(taken, places.ciphertexts * places.size) < LARGEST:
            sample = np.arange(1.0, len(places.start) + 1).reshape(1, *places.shape)
            packed = places.pack(sample)
            # A server may place all values at one position: its model is useless then.
            apart = np.count_nonzero(packed) == taken
            require(not apart or np.array_equal(places.unpack(packed, 1), sample), "values move")
    if len(manifest.output.places.start) < LARGEST:
        manifest.answers(np.zeros((1, *manifest.output.places.shape)))
    return True


def _plan(data: bytes) -> bool:
    plan = plan_file.from_json(data.decode(errors="replace"))
    require(plan_file.from_json(plan_file.to_json(plan)) == plan, "a plan changed when it was written")
    return True


def _workload(data: bytes) -> bool:
    workload = Workload.from_json(data.decode(errors="replace"))
    require(Workload.from_json(workload.to_json()) == workload, "a workload changed when it was written")
    return True


def _calibration(data: bytes) -> bool:
    calibration = Calibration.from_json(data.decode(errors="replace"))
    require(
        Calibration.from_json(calibration.to_json()) == calibration,
        "a calibration changed when it was written",
    )
    return True


def _array(data: bytes) -> bool:
    array = read_array(data, MAX_NUMBERS)
    numpys = np.load(io.BytesIO(data), allow_pickle=False)
    same = array.shape == numpys.shape and np.array_equal(array, numpys, equal_nan=array.dtype.kind == "f")
    require(same, "numpy reads another array")
    return True


def _image(data: bytes) -> bool:
    with file_of(data, ".png") as path:
        pixels = load_image(path)
    require(pixels.ndim == 3 and len(pixels) in (1, 3), f"an image of shape {pixels.shape}")
    require(bool(((pixels >= 0) & (pixels <= 1)).all()), "pixels outside of [0, 1]")
    return True


def _model(data: bytes) -> bool:
    target = compiler.Target(slots=64, levels=16)
    try:
        compiler.compile_program(data, target, max_plaintext_bytes=1 << 24)
        return True
    except ModelRefusedError as refused:
        if not refused.codes <= {"activations", "ranges"}:
            raise
    shape = sample_shape(onnx.load_model_from_string(data))
    sizes = [size for size in shape if isinstance(size, int)]
    require(len(sizes) == len(shape), "an unknown shape was accepted")
    if np.prod(sizes, dtype=float) > 256:
        return True
    samples = np.random.default_rng(1).normal(size=(4, *sizes))
    compiler.compile_program(data, target, compiler.Fit(calibration=samples), max_plaintext_bytes=1 << 24)
    return True


def _message(data: bytes) -> bool:
    message = Message.from_bytes(data)
    require(message.to_bytes() == data, "a message has two encodings")
    return True


def _layout(data: bytes) -> bool:
    layout = ArrayLayout.from_bytes(data)
    require(ArrayLayout.from_bytes(layout.to_bytes()) == layout, "a layout changed when it was written")
    if layout.count <= LARGEST:
        arrays = layout.unflatten(np.arange(float(layout.count)))
        require(tuple(map(str, arrays)) == tuple(name for name, _, _ in layout.entries), "arrays are missing")
    return True


def _accounts(data: bytes) -> bool:
    with file_of(data, ".json") as path:
        Accounts.load(path)
    return True


def _description(data: bytes) -> bool:
    """Read `model.json` next to the other files of a model's folder."""
    with tempfile.TemporaryDirectory() as folder:
        for path in MODEL_FOLDER.iterdir():
            shutil.copyfile(path, Path(folder) / path.name)
        (Path(folder) / DESCRIPTION).write_bytes(data)
        model = Model.load(Path(folder))
        require(model.manifest.encoded == Manifest.read(model.manifest.encoded).encoded, "another manifest")
    return True


def _search_directory(data: bytes) -> bool:
    directories = read_directories(data)
    written = b"".join(directory.to_bytes() for directory in directories)
    again = read_directories(written)
    require(written == b"".join(directory.to_bytes() for directory in again), "a directory changed")
    require(all(directory.vectors <= directory.places for directory in again), "vectors without a place")
    return True


def _search_answer(data: bytes) -> bool:
    require(b"".join(part.to_bytes() for part in read_answer(data)) == data, "an answer has two encodings")
    return True


def _search_vote(data: bytes) -> bool:
    vote = Vote.from_bytes(data)
    require(Vote.from_bytes(vote.to_bytes()) == vote, "a vote changed when it was written")
    return True


READERS = {
    "program": Reader(_program, mutate_zip),
    "manifest": Reader(_manifest, mutate_json),
    "model_description": Reader(_description, mutate_sealed, 1 << 12),
    "plan": Reader(_plan, mutate_json),
    "workload": Reader(_workload, mutate_json),
    "calibration": Reader(_calibration, mutate_json),
    "array": Reader(_array, longest=1 << 10),
    "image": Reader(_image, mutate_png, 1 << 12),
    "onnx_model": Reader(_model, mutate_onnx, 1 << 13),
    "message": Reader(_message, mutate_checked, 1 << 10),
    "array_layout": Reader(_layout, mutate_json, 1 << 12),
    "accounts": Reader(_accounts, mutate_json, 1 << 12),
    "search_directory": Reader(_search_directory, mutate_checked, 1 << 12),
    "search_parts": Reader(_search_answer, longest=1 << 10),
    "search_vote": Reader(_search_vote, mutate_sealed, 1 << 12),
}
"""Readers by the name of their archive in `fuzz/corpus`."""
