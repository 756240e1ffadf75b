"""Adds 1 to every value of the model. The share is kept in the folder that the test names."""

import os

from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from keywright.federated import ThresholdMod

from small import ENCODING, THRESHOLD

mod = ThresholdMod(ENCODING, THRESHOLD, folder=os.environ["KEYWRIGHT_TEST_FOLDER"])
app = ClientApp(mods=[mod])
mod.register(app)


@app.train()
def _train(message: Message, context: Context) -> Message:
    arrays = message.content.array_records["arrays"]
    trained = ArrayRecord({name: Array(array.numpy() + 1) for name, array in arrays.items()})
    content = RecordDict({"arrays": trained, "metrics": MetricRecord({"num-examples": 10})})
    return Message(content, reply_to=message)
