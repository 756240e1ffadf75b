"""Keras's models: `python -m studies.models.training.keras NAME FOLDER`."""

from __future__ import annotations

from pathlib import Path

import keras
import tensorflow as tf
import tf2onnx
from keras import layers

from studies.models.training.data import Data, table
from studies.models.training.files import Trained, main

OPSET = 18


def fitted(network: keras.Model, data: Data, epochs: int) -> Trained:
    """Adam, then tf2onnx."""
    network.compile("adam", "sparse_categorical_crossentropy")
    network.fit(data.train, data.known, batch_size=32, epochs=epochs, verbose=0)
    signature = [tf.TensorSpec((None, *data.train.shape[1:]), tf.float32, name="x")]
    function = tf.function(lambda x: network(x, training=False), input_signature=signature)
    exported, _ = tf2onnx.convert.from_function(function, signature, opset=OPSET)
    return Trained(exported.SerializeToString(), data, network(data.tests, training=False).numpy())


def convolutional(_: Path | None) -> Trained:
    """Convolutions with batch normalisation and ELU on 8 x 8 pixels, softmax at the end."""
    network = keras.Sequential(
        [
            layers.Input((8, 8, 1)),
            layers.Conv2D(8, 3, padding="same"),
            layers.BatchNormalization(),
            layers.ELU(),
            layers.AveragePooling2D(2),
            layers.Conv2D(16, 3, activation="elu"),
            layers.Flatten(),
            layers.Dense(10, activation="softmax"),
        ]
    )
    return fitted(network, table("digits").shaped(8, 8, 1), 30)


def dense(_: Path | None) -> Trained:
    """13-16-3 with tanh."""
    network = keras.Sequential(
        [layers.Input((13,)), layers.Dense(16, activation="tanh"), layers.Dense(3, activation="softmax")]
    )
    return fitted(network, table("wine").standardised(), 60)


MODELS = {"keras-convolutional": convolutional, "keras-dense": dense}

if __name__ == "__main__":
    keras.utils.set_random_seed(0)
    main(MODELS)
