"""Fits of activation functions, against bounds from approximation theory."""

import math

import numpy as np
import pytest
from keywright.compiler.activations.approximation.chebyshev import fit
from keywright.compiler.activations.approximation.method import Method
from keywright.compiler.activations.fitting import fit_activation, replace_activations
from keywright.compiler.activations.functions import ACTIVATIONS, POSITIVE, relu
from keywright.compiler.activations.ranges import run_exact
from keywright.compiler.graph.graph import Activation, Graph, Input, Linear
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.program.fit_report import FittedActivation


def replaced(
    graph: Graph, samples: np.ndarray, method: Method, margin: float
) -> tuple[Graph, list[FittedActivation]]:
    ranges = run_exact(graph, samples).ranges(margin)
    chosen = {
        number: fit_activation(node, ranges[number], method)
        for number, node in graph.nodes.items()
        if isinstance(node, Activation)
    }
    return replace_activations(graph, ranges, chosen)


def test_polynomials_are_reproduced() -> None:
    coefficients = fit(lambda x: 2 * x**3 - x + 1, -3.0, 5.0, 3, np.linspace(-1, 1, 50))
    x = np.linspace(-3, 5, 100)
    assert np.allclose(
        np.polynomial.chebyshev.chebval((x - 1) / 4, coefficients), 2 * x**3 - x + 1, atol=1e-11
    )


@pytest.mark.parametrize("degree", [3, 7, 15])
def test_exponentials_are_within_the_chebyshev_bound(degree: int) -> None:
    """Interpolation of exp on [-1, 1] errs by at most e / (2^d (d + 1)!); least squares by Lebesgue's factor
    more."""
    coefficients = fit(np.exp, -1.0, 1.0, degree, np.linspace(-0.5, 0.5, 100))
    x = np.linspace(-1, 1, 1000)
    error = np.abs(np.polynomial.chebyshev.chebval(x, coefficients) - np.exp(x)).max()
    best = math.e / (2**degree * math.factorial(degree + 1))
    lebesgue = 2 + 2 / math.pi * math.log(degree + 1)
    assert error <= 2 * lebesgue * best + 1e-13


def test_data_pull_the_fit_towards_them() -> None:
    x = np.linspace(-8, 8, 4001)
    near = np.abs(x) < 1
    errors = []
    for data in (np.linspace(-1, 1, 200), np.linspace(-8, 8, 200)):
        c = fit(relu, -8.0, 8.0, 6, data)
        errors.append(np.abs(np.polynomial.chebyshev.chebval(x / 8, c) - relu(x))[near].mean())
    assert errors[0] < errors[1]


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_functions_are_finite_far_out(name: str) -> None:
    with np.errstate(over="raise", invalid="raise"):
        far = np.asarray([1e-9, 30.0, 1e4]) if name in POSITIVE else np.asarray([-1e4, -30.0, 0.0, 30.0, 1e4])
        assert np.isfinite(ACTIVATIONS[name](far)).all()


def test_the_margin_widens_measured_ranges() -> None:
    graph = Graph()
    source = graph.add(Input((2,)))
    graph.output = graph.add(Activation((2,), (source,), np.tanh, "Tanh", "only"))
    samples = np.asarray([[-1.0, 0.0], [0.5, 3.0]])
    _, fitted = replaced(graph, samples, Method("chebyshev", 5), 0.25)
    assert (fitted[0].low, fitted[0].high) == (-2.0, 4.0)


def test_two_activations_of_one_value_keep_their_ranges() -> None:
    """The second activation cannot scale a value that the first one already reads."""
    graph = Graph()
    source = graph.add(Input((4,)))
    matrix = SparseMatrix.from_dense(np.tri(4))
    hidden = graph.add(Linear((4,), (source,), (matrix,), np.ones(4)))
    first = graph.add(Activation((4,), (hidden,), np.tanh, "Tanh", "first"))
    second = graph.add(Activation((4,), (hidden,), np.cos, "Cos", "second"))
    graph.output = graph.add(Linear((4,), (first, second), (matrix, matrix), np.zeros(4)))
    samples = np.random.default_rng(0).uniform(-1, 1, (50, 4))
    result, fitted = replaced(graph, samples, Method("chebyshev", 9), 0.1)
    bound = sum(f.max_error for f in fitted) * 4
    for sample in samples:
        error = result.evaluate(sample)[result.output] - graph_values(graph, sample)
        assert np.abs(error).max() <= bound


def graph_values(_: Graph, sample: np.ndarray) -> np.ndarray:
    matrix = np.tri(4)
    hidden = matrix @ sample + 1
    return np.asarray(matrix @ np.tanh(hidden) + matrix @ np.cos(hidden))
