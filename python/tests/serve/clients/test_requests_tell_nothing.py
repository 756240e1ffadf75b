"""What clients of models send, over HTTP and in files, depends on a sample in hidden polynomials alone."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.client import RemoteModel
from keywright.model import Message, Model
from keywright.serve import Service
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tests.serve.network import INPUTS, WORKERS, listening

HEADER = struct.Struct("<8sHHBBBB16sIQ")
CHECKSUM_BYTES = 4
REPETITIONS = 8
"""Encryptions of one sample: a random byte is equal in all of them with a probability of 2^-56."""

Sample = NDArray[np.float64]
Encrypt = Callable[[Sample], Sequence[bytes]]


def weights(inputs: int) -> onnx.ModelProto:
    """A matrix."""
    values = np.random.default_rng(3).normal(size=(inputs, 3)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], "matrix")],
        "matrix",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", inputs])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])],
        [numpy_helper.from_array(values, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def headers(objects: Sequence[bytes]) -> list[NDArray[np.uint8]]:
    """Everything of ciphertexts before the polynomials, without the checksum, which follows from it."""
    ends = [HEADER.size + HEADER.unpack_from(data)[8] for data in objects]
    return [np.frombuffer(data[:end], np.uint8) for data, end in zip(objects, ends, strict=True)]


def assert_tells_nothing(encrypt: Encrypt, samples: Sequence[Sample]) -> None:
    """Headers of different samples differ where those of one sample do, in seeds, and nowhere else."""
    reference, *repeated = [encrypt(samples[0]) for _ in range(REPETITIONS)]
    random = [
        np.any([one != other for other in others], axis=0)
        for one, *others in zip(headers(reference), *map(headers, repeated), strict=True)
    ]
    assert all(places.sum() <= 32 for places in random)
    for sample in samples[1:]:
        sent = encrypt(sample)
        assert [len(data) for data in sent] == [len(data) for data in reference]
        for own, other, places in zip(headers(sent), headers(reference), random, strict=True):
            assert np.array_equal(own[~places], other[~places])


def samples_of(largest: NDArray[np.float64]) -> list[Sample]:
    """Zeros, the largest, one nonzero, and random samples."""
    rng, one = np.random.default_rng(4), np.zeros_like(largest)
    one[0] = largest[0]
    return [0.0 * largest, largest, -largest, one, *(rng.uniform(-1, 1, (2, len(largest))) * largest)]


@pytest.mark.parametrize("sizes", [np.ones(5), 10.0 ** np.arange(-3, 7, 2)], ids=["alike", "of all sizes"])
@pytest.mark.parametrize("public", [False, True])
def test_messages_in_files_tell_nothing(sizes: NDArray[np.float64], public: bool, tmp_path: Path) -> None:
    """With inputs of all sizes, the client normalises them first."""
    calibration = np.random.default_rng(5).uniform(-1, 1, (60, len(sizes))) * sizes
    model = kw.compile(weights(len(sizes)), calibration)
    client = model.client()
    if public:
        client.save(tmp_path / "client")
        (tmp_path / "client" / "secret.kw").unlink()
        client = kw.load_client(tmp_path / "client")
    assert_tells_nothing(lambda x: Message.from_bytes(client.encrypt(x[None])).objects, samples_of(sizes))


def test_requests_over_http_tell_nothing(thin: Model, tmp_path: Path) -> None:
    parameters = kw.Parameters.from_bits(11, [55, *[45] * 5], [50, 50], 45, insecure=True)
    calibration = np.random.default_rng(6).uniform(-1, 1, (60, INPUTS))
    program = compiler.compile_program(
        weights(INPUTS),
        compiler.Target(slots=parameters.max_slots, levels=5),
        compiler.Fit(calibration=calibration),
    )
    for number, model in enumerate((thin, Model("matrix", program, parameters))):
        service = Service(model, tmp_path / str(number), workers=WORKERS)
        with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
            low, high = session.manifest.input.range or (-1.0, 1.0)
            largest = np.full(INPUTS, min(-low, high))
            assert_tells_nothing(lambda x, session=session: session._encrypt(x[None]), samples_of(largest))  # type: ignore[misc]
        service.close()
