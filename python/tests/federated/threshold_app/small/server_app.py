"""One round, from the model that the last run left."""

from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from keywright.federated import ThresholdFedAvg

from small import CLIENTS, ENCODING, THRESHOLD

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    folder = Path(str(context.run_config["folder"]))
    model = folder / "model.npy"
    start = np.load(model) if model.exists() else np.linspace(-1, 1, 7)
    strategy = ThresholdFedAvg(
        ENCODING,
        THRESHOLD,
        state=folder / "server.json",
        fraction_evaluate=0.0,
        min_available_nodes=CLIENTS,
    )
    result = strategy.start(grid, ArrayRecord({"w": Array(start)}), num_rounds=1)
    np.save(model, result.arrays["w"].numpy())
