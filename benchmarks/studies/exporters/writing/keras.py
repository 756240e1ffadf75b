"""Keras through tf2onnx: `python -m studies.exporters.writing.keras FOLDER`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf
import tf2onnx
from keras import layers

from studies.exporters.writing.files import Case, normal, write

OPSETS = range(13, 19)


def dense(*middle: Any) -> list[Any]:
    """6-8-3 with something in the middle."""
    return [layers.Dense(8), *middle, layers.Dense(3)]


def image(*middle: Any) -> list[Any]:
    """A dense layer behind others."""
    return [*middle, layers.Flatten(), layers.Dense(3)]


def function(of: Callable[[Any], Any]) -> Any:
    """A layer without weights."""
    return layers.Lambda(of)


CASES: dict[str, tuple[Callable[[], list[Any]], tuple[int, ...]]] = {
    "linear": (lambda: [layers.Dense(3)], (6,)),
    "logistic": (lambda: [layers.Dense(1, activation="sigmoid")], (6,)),
    "ReLU": (lambda: dense(layers.ReLU()), (6,)),
    "LeakyReLU": (lambda: dense(layers.BatchNormalization(), layers.LeakyReLU(0.2)), (6,)),
    "PReLU": (lambda: dense(layers.PReLU(alpha_initializer="uniform")), (6,)),
    "ELU": (lambda: dense(layers.ELU()), (6,)),
    "SELU": (lambda: dense(layers.Activation("selu")), (6,)),
    "Clip": (lambda: dense(function(lambda x: tf.clip_by_value(x, -0.5, 1.0))), (6,)),
    "ReLU6": (lambda: dense(layers.Activation("relu6")), (6,)),
    "HardSwish": (lambda: dense(layers.Activation("hard_silu")), (6,)),
    "SiLU": (lambda: dense(layers.Activation("silu")), (6,)),
    "GELU": (lambda: dense(layers.Activation("gelu")), (6,)),
    "GELU by tanh": (lambda: dense(function(lambda x: keras.activations.gelu(x, approximate=True))), (6,)),
    "Mish": (lambda: dense(layers.Activation("mish")), (6,)),
    "Softplus": (lambda: dense(layers.Activation("softplus")), (6,)),
    "Sigmoid": (lambda: dense(layers.Activation("sigmoid")), (6,)),
    "Concat": (lambda: dense(function(lambda x: tf.concat([x[:, :3], 2 * x, x[:, 5:]], 1))), (6,)),
    "Slice": (lambda: dense(function(lambda x: x[:, 1:7:2])), (6,)),
    "Split": (lambda: dense(function(lambda x: tf.split(x, 2, 1)[0] - tf.split(x, 2, 1)[1])), (6,)),
    "Pad": (lambda: image(layers.ZeroPadding1D((1, 2)), layers.Conv1D(2, 3)), (5, 2)),
    "Transpose": (lambda: image(layers.Permute((2, 1)), layers.Conv1D(2, 3)), (3, 5)),
    "Gather": (lambda: dense(function(lambda x: tf.gather(x, [5, 0, 3, 3], axis=1))), (6,)),
    "Conv1d": (lambda: image(layers.Conv1D(3, 3, strides=2, padding="same"), layers.ReLU()), (9, 2)),
    "Conv2d": (
        lambda: image(
            layers.Conv2D(3, 3),
            layers.BatchNormalization(),
            layers.Activation("silu"),
            layers.AveragePooling2D(2),
        ),
        (8, 8, 1),
    ),
    "ConvTranspose": (lambda: [layers.Conv2DTranspose(2, 2, strides=2), layers.UpSampling2D(2)], (3, 3, 1)),
    "MaxPool": (lambda: image(layers.Conv2D(2, 3), layers.MaxPooling2D(2)), (6, 6, 1)),
    "LayerNorm": (lambda: dense(layers.LayerNormalization()), (6,)),
    "GroupNorm": (lambda: [layers.Conv1D(4, 3), layers.GroupNormalization(2), layers.Flatten()], (8, 2)),
    "RNN": (lambda: [layers.SimpleRNN(4, unroll=True), layers.Dense(2)], (3, 3)),
    "GRU": (lambda: [layers.GRU(4), layers.Dense(2)], (3, 3)),
    "LSTM": (lambda: [layers.LSTM(4), layers.Dense(2)], (3, 3)),
    "GRU unrolled": (lambda: [layers.GRU(4, unroll=True), layers.Dense(2)], (3, 3)),
    "LSTM unrolled": (lambda: [layers.LSTM(4, unroll=True), layers.Dense(2)], (3, 3)),
    "GRU both ways": (lambda: [layers.Bidirectional(layers.GRU(4)), layers.Dense(2)], (3, 3)),
    "Softmax": (lambda: [layers.Dense(3, activation="softmax")], (6,)),
    "LogSoftmax": (lambda: [layers.Dense(3, activation="log_softmax")], (6,)),
    "ArgMax": (lambda: [layers.Dense(3), function(lambda x: tf.argmax(x, -1))], (6,)),
}
"""By name, with the shape of a sample."""


def cases() -> Iterator[Case]:
    """Every network, untrained, with moving averages of batches that it has seen."""
    for name, (build, shape) in CASES.items():
        keras.utils.set_random_seed(2)
        network, samples = keras.Sequential([layers.Input(shape), *build()]), normal(*shape)
        for layer in network.layers:
            if isinstance(layer, layers.BatchNormalization):
                layer.moving_mean.assign(layer.moving_mean + 0.2)
                layer.moving_variance.assign(layer.moving_variance * 0.7)
        outputs = network(samples, training=False).numpy()

        def export(opset: int, network: Any = network, shape: tuple[int, ...] = shape) -> bytes:
            signature = [tf.TensorSpec((None, *shape), tf.float32, name="x")]
            traced = tf.function(lambda x: network(x, training=False), input_signature=signature)
            exported, _ = tf2onnx.convert.from_function(traced, signature, opset=opset)
            return bytes(exported.SerializeToString())

        yield Case(name, samples, outputs, export)


if __name__ == "__main__":
    versions = {"keras": keras.__version__, "tensorflow": tf.__version__, "tf2onnx": tf2onnx.__version__}
    write("tf2onnx", cases(), OPSETS, versions)
