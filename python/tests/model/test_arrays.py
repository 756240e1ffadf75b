"""Every place that takes samples, with every kind of array: the right answer or a refusal with a reason."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright import compiler, runtime
from keywright.cli import main
from keywright.client import RemoteModel
from keywright.errors import EncodeError, KeywrightError
from keywright.model import Model, ModelClient, ModelServer
from numpy.typing import ArrayLike
from onnx import TensorProto, helper, numpy_helper, save

linear_model: Any = importlib.import_module("sklearn.linear_model")
sparse: Any = importlib.import_module("scipy.sparse")

MATRIX = np.array([[1.0, 0.5], [-2.0, 0.25], [0.5, 1.0]])
GOOD = np.random.default_rng(3).integers(-8, 8, (4, 3)) / 8.0
"""Numbers that every type holds exactly."""


class Subclass(np.ndarray):
    """An array of another class."""


class Frame:
    """What the engine knows of data frames, without their library."""

    def __init__(self, columns: list[Any]) -> None:
        self.columns = columns

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(GOOD, dtype)

    def __getitem__(self, name: Any) -> Any:
        return GOOD[:, self.columns.index(name)]


class Tensor:
    """A tensor with a gradient, which its library gives to numpy only detached."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy()")


def masked(*places: tuple[int, int]) -> Any:
    result = np.ma.masked_array(GOOD, mask=np.zeros_like(GOOD, bool))
    for place in places:
        result[place] = np.ma.masked
    return result


def objects(value: Any) -> Any:
    result = GOOD.astype(object)
    result[1, 1] = value
    return result


def matrix(values: ArrayLike) -> Any:
    """A matrix of numpy, which warns that it is old."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return np.asmatrix(values)


KINDS: dict[str, tuple[Any, bool]] = {
    "doubles": (GOOD, True),
    "lists": (GOOD.tolist(), True),
    "single precision": (GOOD.astype("f4"), True),
    "half precision": (GOOD.astype("f2"), True),
    "extended precision": (GOOD.astype(np.longdouble), True),
    "big-endian": (GOOD.astype(">f8"), True),
    "columns first": (np.asfortranarray(GOOD), True),
    "every second": (np.repeat(GOOD, 2, axis=1)[:, ::2], True),
    "backwards": (np.ascontiguousarray(GOOD[::-1, ::-1])[::-1, ::-1], True),
    "read only": (np.broadcast_to(GOOD[:1], (4, 3)) * 0 + GOOD, True),
    "subclass": (GOOD.view(Subclass), True),
    "matrix": (matrix(GOOD), True),
    "view of memory": (memoryview(GOOD.data), True),
    "objects that are numbers": (objects(GOOD[1, 1]), True),
    "nothing masked": (masked(), True),
    "frame with counted columns": (Frame([0, 1, 2]), True),
    "one masked": (masked((0, 0)), False),
    "complex": (GOOD + 1j, False),
    "complex without imaginary parts": (GOOD + 0j, False),
    "a complex object": (objects(1 + 2j), False),
    "an object beyond floating point": (objects(10**400), False),
    "an object that is text": (objects("high"), False),
    "none": (objects(None), False),
    "texts": (GOOD.astype(str), False),
    "bytes": (GOOD.astype("S"), False),
    "not a number": (np.where(GOOD[0, 0] == GOOD, np.nan, GOOD), False),
    "infinite": (np.where(GOOD[0, 0] == GOOD, np.inf, GOOD), False),
    "dates": (np.arange(12).reshape(4, 3).astype("M8[s]"), False),
    "durations": (np.arange(12).reshape(4, 3).astype("m8[s]"), False),
    "records": (np.zeros(4, [("a", float), ("b", float), ("c", float)]), False),
    "ragged": ([[1.0, 2.0], [1.0, 2.0, 3.0]], False),
    "sparse": (sparse.csr_array(GOOD), False),
    "sparse matrix": (sparse.coo_matrix(GOOD), False),
    "tensor with a gradient": (Tensor(), False),
    "frame": (Frame(["a", "b", "c"]), False),
    "mapping": ({"a": GOOD[:, 0], "b": GOOD[:, 1], "c": GOOD[:, 2]}, False),
    "set": ({1.0, 2.0, 3.0}, False),
    "iterator": (iter(GOOD), False),
    "number": (np.float64(1.0), False),
    "nothing": (np.zeros((0, 3)), False),
}


def network() -> Any:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["batch", size])
        for name, size in (("x", 3), ("y", 2))
    ]
    graph = helper.make_graph(nodes, "matrix", ends[:1], ends[1:], [numpy_helper.from_array(MATRIX, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def model() -> Model:
    return kw.compile(network(), np.random.default_rng(1).uniform(-1, 1, (60, 3)), batch=len(GOOD))


def packed(model: Model, rows: Any) -> Any:
    """Return the outputs of packed samples."""
    program = model.program
    backend = runtime.ClearBackend(program.slots)
    given = [backend.encrypt(row, program.input.level, program.input.log_n) for row in rows]
    outputs = runtime.execute(program, backend, given)
    return program.unpack(np.asarray([each.values for each in outputs]), len(GOOD))


def exchanged(model: Model, samples: Any) -> Any:
    """Return what a client decrypts of a server's answer."""
    user = ModelClient(model, secret=kw.SecretKey.generate(model.parameters))
    server = ModelServer(model, user.execution)
    request = user.encrypt(samples)
    server.load_keys(user.keys())
    return user.decrypt(server.run(request))


def checked(model: Model, samples: Any) -> Any:
    """Return what the client of a service would send, without a service."""
    remote = object.__new__(RemoteModel)
    remote.manifest, remote.program = model.interface, None
    return remote.check(samples) @ MATRIX


def simulated(model: Model, samples: Any) -> Any:
    plan = model.plan_batches(len(GOOD))[1].execution
    return runtime.simulate(model.program, plan, samples, repetitions=1).outputs


def compiled(_: Model, samples: Any) -> Any:
    return runtime.run_clear(kw.compile(network(), samples, batch=1).program, GOOD)


ENTRIES: dict[str, Callable[[Model, Any], Any]] = {
    "Model.predict": lambda model, samples: model.predict(samples),
    "Model.simulate": lambda model, samples: model.simulate(samples, repetitions=1).outputs,
    "ModelClient.guard": lambda model, samples: ModelClient(model).guard(samples),
    "ModelClient.encrypt": exchanged,
    "Program.features": lambda model, samples: model.program.features(samples)[0] @ MATRIX,
    "Program.batches": lambda model, samples: np.concatenate(model.program.batches(samples)) @ MATRIX,
    "Program.pack": lambda model, samples: packed(model, model.program.pack(samples)),
    "RemoteModel.check": checked,
    "check": lambda model, samples: compiler.check(model.program, samples, network()).outputs,
    "guard": lambda model, samples: runtime.guard(model.program, samples),
    "run_clear": lambda model, samples: runtime.run_clear(model.program, samples),
    "simulate": simulated,
    "compile": compiled,
    "Fit": lambda model, samples: (
        compiler.approximate(network(), compiler.Fit(calibration=samples)).run.samples @ MATRIX
    ),
}

THROUGH = {"Manifest.features": "RemoteModel.check", "Session.infer": "RemoteModel.check", "to_onnx": "Fit"}
"""What only passes samples on, or leaves their values to what takes them next."""

NAMES = ("samples", "sample", "calibration", "example")


def public_entries() -> Iterator[str]:
    """Yield the public functions and methods that promise to take any samples."""
    rooms = [name for _, name, _ in pkgutil.iter_modules(kw.__path__, "keywright.") if "._" not in name]
    for module in [kw, *map(importlib.import_module, rooms)]:
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            members = [("", thing)]
            if inspect.isclass(thing):
                members += [(f".{key}", each) for key, each in inspect.getmembers(thing, inspect.isfunction)]
            for key, each in members:
                if key.startswith("._") or not callable(each):
                    continue
                try:
                    parameters = inspect.signature(each).parameters
                except ValueError:
                    continue
                if any(
                    parameters[taken].annotation in (Any, ArrayLike) for taken in NAMES if taken in parameters
                ):
                    yield name + key


def test_every_public_entry_of_samples_is_below() -> None:
    assert set(public_entries()) == ENTRIES.keys() | THROUGH.keys()


@pytest.mark.parametrize("entry", ENTRIES)
def test_arrays_give_the_right_answer_or_a_reason(model: Model, entry: str) -> None:
    for kind, (samples, right) in KINDS.items():
        with contextlib.nullcontext() if right else pytest.raises(KeywrightError, match=" "):
            outputs = ENTRIES[entry](model, samples)
        if right and outputs is not None:
            np.testing.assert_allclose(outputs, GOOD @ MATRIX, atol=1e-3, err_msg=kind)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("frame", "mapping")])
def test_an_estimator_takes_such_calibration_data_or_says_why(kind: str) -> None:
    """Tables with names are tested with the pipelines."""
    samples, right = KINDS[kind]
    estimator = linear_model.LinearRegression().fit(GOOD, GOOD @ MATRIX)
    with contextlib.nullcontext() if right else pytest.raises(KeywrightError, match=" "):
        compiler.approximate(compiler.to_onnx(estimator, samples), compiler.Fit(calibration=samples))


@pytest.mark.parametrize("shape", [(4, 2), (4, 4), (4, 1, 3), (4, 0), (3,), ()])
def test_an_estimator_refuses_samples_of_other_features(shape: tuple[int, ...]) -> None:
    estimator = linear_model.LinearRegression().fit(GOOD, GOOD @ MATRIX)
    for samples in (np.zeros(shape), {str(k): np.zeros(4) for k in range(shape[-1] if shape else 0)}):
        if isinstance(samples, dict) and len(samples) == 3:
            continue
        with pytest.raises(EncodeError):
            kw.compile(estimator, samples)


@pytest.mark.parametrize("outputs", [[["a"]], [[1j]], [[1.0], [1.0, 2.0]], {"a": 1}, object()])
def test_answers_of_what_is_no_output(model: Model, outputs: Any) -> None:
    for each in (model.answers, model.program.answers, model.interface.answers):
        with pytest.raises(EncodeError, match="outputs"):
            each(outputs)


WRITTEN = [kind for kind, (samples, _) in KINDS.items() if type(samples) is np.ndarray]


@pytest.mark.parametrize("kind", WRITTEN)
def test_files_of_arrays_are_read_or_refused(kind: str, tmp_path: Path) -> None:
    """What numpy writes into a file, for the command line."""
    samples, right = KINDS[kind]
    save(network(), tmp_path / "model.onnx")
    np.save(tmp_path / "calibration.npy", GOOD)
    np.save(tmp_path / "samples.npy", samples)
    files = ["--calibration", str(tmp_path / "calibration.npy"), "--input", str(tmp_path / "samples.npy")]
    expected = 0 if right and samples.dtype != np.longdouble and samples.dtype.kind != "O" else 2
    assert main(["infer", str(tmp_path / "model.onnx"), *files, "--explain"]) == expected
