"""`keywright[federated]`: two Flower clients' encrypted updates are averaged."""

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from keywright.federated import Encoding, EncryptedFedAvg, EncryptionMod, SumKey, decrypt_arrays
from keywright.federated.loopback import LoopbackGrid

encoding = Encoding(bound=4.0, max_clients=2, max_weight=100, bits=30)
key = SumKey.generate(encoding.parameters)
client = ClientApp(mods=[EncryptionMod(key, encoding)])


@client.train()
def train(message: Message, context: Context) -> Message:
    """Add the client's number to the weights."""
    weights = message.content.array_records["arrays"]["w"].numpy() + context.node_id
    arrays, metrics = ArrayRecord({"w": Array(weights)}), MetricRecord({"num-examples": 100})
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)


strategy = EncryptedFedAvg(encoding, fraction_evaluate=0.0, min_available_nodes=2)
start = ArrayRecord({"w": Array(np.zeros(4))})
result = strategy.start(LoopbackGrid({1: client, 2: client}), start, num_rounds=1)
average = decrypt_arrays(result.arrays, key, encoding)["w"]
assert np.abs(average - 1.5).max() <= encoding.error_bound(2, 200) + 1e-6
print(f"the average of two encrypted updates is {average[0]:.6f}")
