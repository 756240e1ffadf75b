"""The layers of `studies.coefficient_network` as polynomials are the convolutions that they state."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator
from studies.coefficient_network.__main__ import changes, packings, planned
from studies.coefficient_network.export import onnx_model
from studies.coefficient_network.network import (
    IMAGE,
    INPUT,
    LOG_N,
    SETTINGS,
    Array,
    MaskedRotation,
    Network,
    Setting,
    blank_network,
    change_of_width,
    clear_run,
    coefficients,
    cropped,
    layer_lines,
    log_slots,
    relu,
)
from studies.network_keys.rotation_lists import read

N = 1 << LOG_N
Complex = NDArray[np.complex128]


def products(exponents: Array, kernels: Array, dense: Array, places: Array) -> Array:
    """Coefficients of products modulo X^N + 1 at places, (places, kernels)."""
    at = (places.astype(int)[:, None] - exponents.astype(int)) % (2 * N)
    return np.asarray(np.where(at < N, dense[at % N], -dense[at % N]) @ kernels.T)


def random_network(setting: Setting) -> Network:
    """A network of a setting's shape with random weights."""
    rng, blank = np.random.default_rng(1), blank_network(setting)
    layers = tuple(
        replace(layer, weights=rng.normal(size=layer.weights.shape), bias=rng.normal(size=layer.bias.size))
        for layer in blank.layers
    )
    return Network(layers, rng.normal(size=blank.matrix.shape), rng.normal(size=blank.bias.size))


def slots_of(dense: Array, slots: int) -> Complex:
    """The coefficients that fit so many complex slots, in the order of `coeffs_to_slots`."""
    bits = slots.bit_length() - 1
    order = np.array([int(f"{j:0{bits}b}"[::-1], 2) for j in range(slots)]) * (N // 2 // slots)
    return np.asarray(dense[order] + 1j * dense[N // 2 + order])


def coefficients_of(values: Complex) -> Array:
    """The inverse of `slots_of`."""
    bits = values.size.bit_length() - 1
    order = np.array([int(f"{j:0{bits}b}"[::-1], 2) for j in range(values.size)]) * (N // 2 // values.size)
    out = np.zeros(N)
    out[order], out[N // 2 + order] = values.real, values.imag
    return out


def moved(values: Complex, turns: tuple[MaskedRotation, ...]) -> Complex:
    """A step of a change of width on slots."""
    at = np.arange(values.size)
    out = np.zeros_like(values)
    for turn in turns:
        kept = (at >= turn.start) & ((at - turn.start) % turn.period < turn.run)
        out += np.roll(values, -turn.step) * kept
    return out


@pytest.mark.parametrize(
    "setting", [Setting("3", 3, (16, 16, 32, 64), (2, 3)), Setting("5", 5, (48, 96, 96), (1,))]
)
def test_layers_are_convolutions(setting: Setting) -> None:
    network = random_network(setting)
    image = cropped(np.random.default_rng(2).normal(size=(1, IMAGE, IMAGE, 3)), setting.kernel)
    scores, bounds = clear_run(image, network)
    slots = 1 << log_slots(network)
    *lines, last = layer_lines(network, bounds, 5.0)
    values = coefficients(image[0], network.layers[0].apart)
    assert np.abs(values).max() == pytest.approx(np.abs(image).max() / INPUT)
    for line, layer in zip(lines, network.layers, strict=True):
        exponents, kernels, summands, places = line.numbers
        kernels, joined = kernels.reshape(summands.size, -1), np.zeros(N)
        for part in range(layer.parts):
            after = np.zeros(N)
            sums = products(exponents, kernels[part :: layer.parts], values, places)
            for index, bias in enumerate(summands[part :: layer.parts]):
                after[places.astype(int) + index * layer.apart] = sums[:, index] + bias
            after = np.maximum(after, 0)
            if layer.stride > 1:
                held = slots_of(after, slots)
                for turns in change_of_width(layer, slots):
                    held = moved(held, turns)
                after = coefficients_of(held)
            joined += np.roll(after, 4 * layer.apart * part // layer.parts)
        values = joined
    exponents, kernels, summands, places = last.numbers
    result = products(exponents, kernels.reshape(10, -1), values, places)[0] + summands
    assert np.allclose(result * 5.0, scores[0], atol=1e-9)


@pytest.mark.parametrize("setting", [Setting("3", 3, (4, 8, 8), (1, 2)), Setting("5", 5, (4, 8), (1,))])
def test_the_exported_model_has_the_scores_of_the_network(setting: Setting) -> None:
    network, rng = random_network(setting), np.random.default_rng(2)
    pictures, mean = rng.integers(0, 256, (2, IMAGE, IMAGE, 3)), np.array([125.0, 123.0, 114.0])
    expected, _ = clear_run(cropped(pictures - mean, setting.kernel), network)
    images = (pictures.transpose(0, 3, 1, 2) / 255).astype(np.float32)
    (scores,) = ReferenceEvaluator(onnx_model(network, mean)).run(None, {"image": images})
    assert np.allclose(scores, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_changes_of_width_have_the_rotations_of_the_source() -> None:
    for name, sites in (("3-20-1", 2), ("5-8-3", 1)):
        groups = changes(blank_network(SETTINGS[name])).groups
        lists = read("convfhe_resnet")["settings"][name]["strided_repack"]
        for index, site in enumerate(lists[:sites]):
            for group, stage in zip(groups[2 * index :], ("stage_m", "stage_r"), strict=False):
                assert len(group.targets) == len({step for step in site[stage] if step})


def test_packings_are_counted_by_layer() -> None:
    """A layer of 16 channels takes 15 automorphisms, one of 10 in 16 places as many."""
    groups = packings(blank_network(SETTINGS["3-20-1"])).groups
    assert sum(group.count for group in groups) == 7 * 15 + 6 * 31 + 6 * 63 + 15


def test_both_configurations_of_ark_make_one_plan() -> None:
    network = blank_network(SETTINGS["3-20-1"])
    for workload in (packings(network), changes(network)):
        plans = [planned(workload, name)[0] for name in ("ark-memory", "ark-time")]
        assert plans[0].hops == plans[1].hops


def test_polynomials_are_relu_to_ten_bits() -> None:
    values = np.linspace(-7, 7, 20001)
    assert np.abs(relu(values, 7.0) - np.maximum(values, 0)).max() < 7 / 2**10
