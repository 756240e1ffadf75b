"""`keywright[serve]`, `[cluster]`: `keywright serve` evaluates for a client. Arguments are options of it."""

import re
import signal
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

import numpy as np
from keywright.client import RemoteModel

KEYWRIGHT = (sys.executable, "-m", "keywright")
data = files("keywright") / "data"
with (data / "digits_test.npz").open("rb") as file:
    digits = np.load(file)
    image, label = digits["images"][0], int(digits["labels"][0])

with tempfile.TemporaryDirectory() as folder:
    network = Path(folder) / "digits.onnx"
    network.write_bytes((data / "digits.onnx").read_bytes())
    model = Path(folder) / "model"
    subprocess.run([*KEYWRIGHT, "compile", network, "--out", model], check=True)
    state = str(Path(folder) / "state")
    command = [*KEYWRIGHT, "serve", str(model), "--state", state, "--port", "0", *sys.argv[1:]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None
        address = None
        while address is None and (line := server.stdout.readline()):
            print(line, end="")
            address = re.search(r"http://[\d.]+:\d+", line)
        assert address is not None, "the service did not start"
        try:
            with RemoteModel(address[0]).session() as session:
                session.upload_keys()
                scores = session.infer(image)
        finally:
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=120)
    assert server.returncode == 0, server.returncode
assert int(scores.argmax()) == label, scores
print("the service evaluated an encrypted digit and ended")
