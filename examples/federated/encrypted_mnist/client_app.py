"""The client: trains on its own images. The mod is all that encryption changes."""

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import ClientAppCallable
from keywright.federated import EncryptionMod, SumKey

from encrypted_mnist.data import load, partition
from encrypted_mnist.federation import encoding
from encrypted_mnist.network import Model, accuracy, train


def encryption(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """The mod, with the key from this client's disk. In your own app, load the key where the app runs."""
    config = context.run_config
    if not config["encrypted"]:
        return call_next(message, context)
    declared = encoding(int(config["clients"]))
    key = SumKey.load(str(config["key"]), declared.parameters)
    return EncryptionMod(key, declared)(message, context, call_next)


app = ClientApp(mods=[encryption])


def _model(message: Message) -> Model:
    return {name: np.array(array.numpy()) for name, array in message.content.array_records["arrays"].items()}


def _samples(context: Context) -> tuple[np.ndarray, np.ndarray]:
    config = context.run_config
    images, labels = load(str(config["data"]), "train")
    number, clients = int(context.node_config["partition-id"]), int(config["clients"])
    mine = partition(labels, clients, number, str(config["partition"]), int(config["seed"]))
    return images[mine], labels[mine]


@app.train()
def _train(message: Message, context: Context) -> Message:
    weights, (images, labels) = _model(message), _samples(context)
    number = int(str(message.content.config_records["config"]["server-round"]))
    seed = (
        hash((int(context.run_config["seed"]), int(context.node_config["partition-id"]), number))
        & 0xFFFF_FFFF
    )
    loss = train(weights, images, labels, rate=0.05, batch=32, seed=seed)
    arrays = ArrayRecord({name: Array(weight) for name, weight in weights.items()})
    metrics = MetricRecord({"num-examples": len(images), "loss": loss})
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)


@app.evaluate()
def _evaluate(message: Message, context: Context) -> Message:
    images, labels = load(str(context.run_config["data"]), "test")
    metrics = MetricRecord(
        {"num-examples": len(images), "accuracy": accuracy(_model(message), images, labels)}
    )
    return Message(RecordDict({"metrics": metrics}), reply_to=message)
