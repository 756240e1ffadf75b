"""Flax through jax2onnx: `python -m studies.exporters.writing.flax FOLDER`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax2onnx import to_onnx

from studies.exporters.writing.files import Case, normal, write

OPSETS = range(21, 26)


class Dense(nnx.Module):  # type: ignore[misc]
    """6-8-3 with a function in the middle."""

    def __init__(self, act: Callable[[Any], Any]) -> None:
        rngs = nnx.Rngs(2)
        self.first, self.act = nnx.Linear(6, 8, rngs=rngs), act
        width = act(jnp.zeros((1, 8))).shape[-1]
        self.last = nnx.Linear(width, 3, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.last(self.act(self.first(x)))


class Convolutional(nnx.Module):  # type: ignore[misc]
    """A convolution, a pool, and a dense layer."""

    def __init__(self, pool: Callable[..., Any]) -> None:
        rngs = nnx.Rngs(2)
        self.first, self.pool = nnx.Conv(1, 2, (3, 3), padding="VALID", rngs=rngs), pool
        self.last = nnx.Linear(8, 3, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        pooled = self.pool(self.first(x), window_shape=(2, 2), strides=(2, 2))
        return self.last(pooled.reshape(x.shape[0], 8))


class _Behind(nnx.Module):  # type: ignore[misc]
    def __init__(self, act: Callable[[Any], Any], outputs: int) -> None:
        self.scores, self.act = nnx.Linear(6, outputs, rngs=nnx.Rngs(2)), act

    def __call__(self, x: Any) -> Any:
        return self.act(self.scores(x))


class _Normalised(nnx.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        rngs = nnx.Rngs(2)
        self.first, self.norm = nnx.Linear(6, 8, rngs=rngs), nnx.LayerNorm(8, rngs=rngs)
        self.last = nnx.Linear(8, 3, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.last(self.norm(self.first(x)))


CASES: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "linear": (lambda: nnx.Linear(6, 3, rngs=nnx.Rngs(2)), (6,)),
    "logistic": (lambda: _Behind(nnx.sigmoid, 1), (6,)),
    "ReLU": (lambda: Dense(nnx.relu), (6,)),
    "LeakyReLU": (lambda: Dense(lambda x: nnx.leaky_relu(x, 0.2)), (6,)),
    "ELU": (lambda: Dense(nnx.elu), (6,)),
    "SELU": (lambda: Dense(nnx.selu), (6,)),
    "Clip": (lambda: Dense(lambda x: jnp.clip(x, -0.5, 1.0)), (6,)),
    "ReLU6": (lambda: Dense(nnx.relu6), (6,)),
    "HardSwish": (lambda: Dense(nnx.hard_silu), (6,)),
    "SiLU": (lambda: Dense(nnx.silu), (6,)),
    "GELU": (lambda: Dense(lambda x: nnx.gelu(x, approximate=False)), (6,)),
    "GELU by tanh": (lambda: Dense(nnx.gelu), (6,)),
    "Softplus": (lambda: Dense(nnx.softplus), (6,)),
    "Sigmoid": (lambda: Dense(nnx.sigmoid), (6,)),
    "Concat": (lambda: Dense(lambda x: jnp.concatenate([x[:, :3], 2 * x, x[:, 5:]], 1)), (6,)),
    "Slice": (lambda: Dense(lambda x: x[:, 1:7:2]), (6,)),
    "Split": (lambda: Dense(lambda x: jnp.split(x, 2, 1)[0] - jnp.split(x, 2, 1)[1]), (6,)),
    "Pad": (lambda: Dense(lambda x: jnp.pad(x, ((0, 0), (1, 2)), constant_values=0.5)), (6,)),
    "Gather": (lambda: Dense(lambda x: x[:, np.asarray([5, 0, 3, 3])]), (6,)),
    "Conv2d": (lambda: Convolutional(nnx.avg_pool), (6, 6, 1)),
    "MaxPool": (lambda: Convolutional(nnx.max_pool), (6, 6, 1)),
    "LayerNorm": (_Normalised, (6,)),
    "Softmax": (lambda: _Behind(nnx.softmax, 3), (6,)),
    "LogSoftmax": (lambda: _Behind(nnx.log_softmax, 3), (6,)),
    "ArgMax": (lambda: _Behind(lambda x: jnp.argmax(x, -1), 3), (6,)),
}
"""By name, with the shape of a sample."""


def cases() -> Iterator[Case]:
    """Every module, untrained."""
    for name, (build, shape) in CASES.items():
        module, samples = build(), normal(*shape)
        outputs = np.asarray(module(jnp.asarray(samples)))

        def export(opset: int, module: Any = module, shape: tuple[int, ...] = shape) -> bytes:
            exported = to_onnx(module, [("B", *shape)], opset=opset)
            return bytes(exported.SerializeToString())

        yield Case(name, samples, outputs, export)


if __name__ == "__main__":
    names = ("flax", "jax", "jax2onnx")
    assert jax.default_backend() == "cpu"
    write("jax2onnx", cases(), OPSETS, {name: version(name) for name in names})
