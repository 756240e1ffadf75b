"""The server, which has no key. Its result is an encrypted sum."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from keywright.federated import EncryptedFedAvg

from encrypted_mnist.data import load
from encrypted_mnist.federation import encoding
from encrypted_mnist.network import initial

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the rounds; write the metrics, and the arrays as the server has them."""
    config = context.run_config
    clients, fraction = int(config["clients"]), float(config["fraction"])
    side = load(str(config["data"]), "test")[0].shape[2]
    model = initial(str(config["model"]), side, int(config["seed"]))
    options = {
        "fraction_train": fraction,
        "fraction_evaluate": 1 / clients,
        "min_evaluate_nodes": 1,
        "min_available_nodes": clients,
    }
    strategy = EncryptedFedAvg(encoding(clients), **options) if config["encrypted"] else FedAvg(**options)  # type: ignore[arg-type]
    start = ArrayRecord({name: Array(weight) for name, weight in model.items()})
    result = strategy.start(grid, start, num_rounds=int(config["rounds"]))
    output = Path(str(config["output"]))
    train = {number: dict(metrics) for number, metrics in result.train_metrics_clientapp.items()}
    evaluate = {number: dict(metrics) for number, metrics in result.evaluate_metrics_clientapp.items()}
    output.with_suffix(".json").write_text(json.dumps({"train": train, "evaluate": evaluate}, indent=1))
    arrays: dict[str, Any] = {
        name: np.frombuffer(array.data, np.uint8) for name, array in result.arrays.items()
    }
    np.savez(output, **arrays)
