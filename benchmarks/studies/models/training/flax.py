"""Flax's models: `python -m studies.models.training.flax NAME FOLDER`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax2onnx import to_onnx

from studies.models.training.data import Data, table
from studies.models.training.files import Trained, main

RATE = 0.01


class Perceptron(nnx.Module):  # type: ignore[misc]
    """Two layers of `hidden` with one activation, and a last one."""

    def __init__(self, inputs: int, hidden: int, outputs: int, act: Callable[[jax.Array], jax.Array]) -> None:
        rngs = nnx.Rngs(0)
        self.first, self.second = nnx.Linear(inputs, hidden, rngs=rngs), nnx.Linear(hidden, hidden, rngs=rngs)
        self.last, self.act = nnx.Linear(hidden, outputs, rngs=rngs), act

    def __call__(self, values: jax.Array) -> jax.Array:
        """(count, inputs) to (count, outputs)."""
        return self.last(self.act(self.second(self.act(self.first(values)))))


def fitted(network: Perceptron, data: Data, loss: Callable[[jax.Array], jax.Array], steps: int) -> Trained:
    """Adam over all samples, then jax2onnx."""
    graph, weights = nnx.split(network)
    samples = jnp.asarray(data.train)

    def total(weights: nnx.State) -> jax.Array:
        decay = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(weights))
        return loss(nnx.merge(graph, weights)(samples)) + 1e-3 * decay

    slope = jax.jit(jax.grad(total))
    zeros = jax.tree.map(jnp.zeros_like, weights)
    mean, square = zeros, zeros
    for step in range(1, steps + 1):
        gradient = slope(weights)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
        square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g**2, square, gradient)
        rate = RATE * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        slopes = jax.tree.map(lambda m, s: m / (jnp.sqrt(s) + 1e-8), mean, square)
        weights = jax.tree.map(lambda w, s, rate=rate: w - rate * s, weights, slopes)
    trained = nnx.merge(graph, weights)
    exported = to_onnx(trained, [("B", data.train.shape[1])])
    return Trained(exported.SerializeToString(), data, np.asarray(trained(jnp.asarray(data.tests))))


def classifier(_: Path | None) -> Trained:
    """30-16-16-2 with SiLU."""
    data = table("breast_cancer").standardised()
    known = jax.nn.one_hot(jnp.asarray(data.known, jnp.int32), 2)
    network = Perceptron(30, 16, 2, nnx.silu)
    return fitted(network, data, lambda scores: -(jax.nn.log_softmax(scores) * known).sum(1).mean(), 400)


def regression(_: Path | None) -> Trained:
    """10-16-16-1 with tanh."""
    data = table("diabetes").standardised()
    known = jnp.asarray(data.known)[:, None]
    return fitted(Perceptron(10, 16, 1, nnx.tanh), data, lambda values: ((values - known) ** 2).mean(), 60)


MODELS = {"flax-classifier": classifier, "flax-regression": regression}

if __name__ == "__main__":
    main(MODELS)
