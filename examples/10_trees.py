"""A forest whose thresholds and leaves stay with the server, and whose inputs stay with the client.

python examples/10_trees.py
"""

import tempfile
from pathlib import Path

import keywright as kw
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

samples, labels = load_breast_cancer(return_X_y=True)
typical, tests, known, right = train_test_split(samples, labels, test_size=0.3, random_state=0)
forest = RandomForestClassifier(20, max_depth=5, random_state=0).fit(typical, known)

model = kw.compile(forest, calibration=typical, batch=4)
print(model.report)

with tempfile.TemporaryDirectory() as place:
    folder = Path(place) / "forest"
    model.save(folder)
    client, server = kw.load_client(folder), kw.load_server(folder)
    server.load_keys(client.keys())
    question = client.encrypt(tests[:8])
    answer = server.run(question)  # on ciphertexts
    answers = client.answers(client.decrypt(answer))

print("encrypted:", answers["label"].tolist())
print("forest:   ", forest.predict(tests[:8]).tolist())
print("true:     ", right[:8].tolist())
assert (answers["label"] == forest.predict(tests[:8])).all()
