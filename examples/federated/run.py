"""Run the app of this folder with Flower: as a simulation, or as separate processes over loopback.

    python examples/federated/run.py processes --clients 3 --rounds 2
    python examples/federated/run.py simulation --data MNIST_FOLDER --model cnn --partition labels

Makes the clients' shared key, starts what Flower needs, and decrypts the result as a client could. The
simulation needs ``pip install 'keywright[simulation]'``. Without --data the digits of scikit-learn are used.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord
from keywright.federated import SumKey, decrypt_arrays

APP = Path(__file__).parent
sys.path.insert(0, str(APP))

from encrypted_mnist.data import load  # noqa: E402 (the app is a folder, not an installed package)
from encrypted_mnist.federation import encoding  # noqa: E402
from encrypted_mnist.network import accuracy  # noqa: E402

BIN = Path(sys.executable).parent


def free_ports(count: int) -> list[int]:
    """Return ports on which no process listens now."""
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a process listens. Raises RuntimeError if it ends."""
    while True:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with {process.returncode}")
        time.sleep(0.2)


@contextmanager
def superlink(folder: Path, nodes: int, *options: str) -> Iterator[str]:
    """A SuperLink and its SuperNodes on this machine; yields the name under which `flwr run` finds them."""
    link, *ports = free_ports(1 + nodes)
    options = ("--insecure", "--disable-runtime-dependency-installation", "--port", str(link), *options)
    log = (folder / "flower.log").open("wb")
    started = [subprocess.Popen([BIN / "flower-superlink", *options], stdout=log, stderr=log)]
    try:
        wait_for(link, started[0])
        for number, port in enumerate(ports):
            node = ["--insecure", "--superlink", f"127.0.0.1:{link}", "--port", str(port)]
            node += ["--node-config", f"partition-id={number}"]
            started.append(subprocess.Popen([BIN / "flower-supernode", *node], stdout=log, stderr=log))
        home = Path(os.environ["FLWR_HOME"])
        home.mkdir(exist_ok=True)
        address = f'[superlink]\ndefault = "loopback"\n\n[superlink.loopback]\naddress = "127.0.0.1:{link}"\n'
        (home / "config.toml").write_text(address + "insecure = true\n")
        yield "loopback"
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait()
        log.close()


def main() -> None:
    """Run the app and print the results."""
    parser = argparse.ArgumentParser(description="Federated averaging of encrypted updates, with Flower.")
    parser.add_argument("how", choices=["simulation", "processes"])
    parser.add_argument("--data", default="", help="folder of the four MNIST idx.gz files")
    parser.add_argument("--model", choices=["mlp", "cnn"], default="mlp")
    parser.add_argument("--partition", choices=["iid", "labels"], default="iid")
    parser.add_argument("--clients", type=int, default=30)
    parser.add_argument("--fraction", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--plain", action="store_true", help="plain FedAvg, to compare")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        run(arguments, Path(name))


def run(arguments: argparse.Namespace, folder: Path) -> None:
    """Run once, with all files in `folder`."""
    declared = encoding(arguments.clients)
    key = SumKey.generate(declared.parameters)
    key.save(folder / "sum.key")
    # Flower starts its other programs by name.
    os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    os.environ |= {
        "FLWR_HOME": str(folder / "flwr"),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
    }
    config = {
        "data": str(Path(arguments.data).resolve()) if arguments.data else "",
        "key": str(folder / "sum.key"),
        "output": str(folder / "result.npz"),
        "encrypted": not arguments.plain,
        **{
            name: getattr(arguments, name) for name in ("model", "partition", "clients", "fraction", "rounds")
        },
    }
    settings = " ".join(f"{key}={json.dumps(value)}" for key, value in config.items())
    command = [str(BIN / "flwr"), "run", str(APP)]
    options = ["--stream", "--run-config", settings]
    if arguments.how == "simulation":
        # Flower's own local SuperLink would continue after the run.
        with superlink(folder, 0, "--simulation") as link:
            size = ["--federation-config", f"num-supernodes={arguments.clients}"]
            flower_run([*command, link, *options, *size])
    else:
        with superlink(folder, arguments.clients) as link:
            flower_run([*command, link, *options])
    report(folder, key, config)


def flower_run(command: list[str]) -> None:
    """`flwr run` until the run ends."""
    subprocess.run(command, check=True)


def report(folder: Path, key: SumKey, config: dict[str, object]) -> None:
    """Decrypt the result with the clients' key and print its accuracy, and the metrics of the last round."""
    with np.load(folder / "result.npz") as stored:
        record = ArrayRecord(
            {name: Array("uint8", data.shape, name, data.tobytes()) for name, data in stored.items()}
        )
    metrics = json.loads((folder / "result.json").read_text())
    print(json.dumps(metrics["train"][max(metrics["train"], key=int)], indent=1))
    if config["encrypted"]:
        model = decrypt_arrays(record, key, encoding(int(str(config["clients"]))))
        images, labels = load(str(config["data"]), "test")
        print(f"accuracy of the decrypted model: {accuracy(model, images, labels):.4f}")


if __name__ == "__main__":
    main()
