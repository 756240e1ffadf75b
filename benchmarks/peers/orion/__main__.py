"""Networks of squares with Orion: a JSON object per line in, one per line out.

The first request has `network`, of `peers.orion.networks`; `weights`, an archive of its weights and biases;
`samples`, an array (count, channels, height, width); `log_n`; and `folder`, where Orion keeps diagonals and
keys, or null for all in memory. Its answer has the seconds of compiling, keys included. Each later request
has `place`, of a sample; the answer has its scores and seconds.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import orion
import torch
from harness.programs.peer import peak_rss_bytes

from peers.orion.networks import BOOTSTRAP, NETWORKS


def compiled(given: dict[str, Any], samples: torch.Tensor) -> tuple[Any, int]:
    """The network, ready for ciphertexts, and the level of its input."""
    make, parameters = NETWORKS[given["network"]]
    chain, special, weight = parameters[given["log_n"]]
    folder = given["folder"]
    stored = {name: "" if folder is None else str(Path(folder) / f"{name}.h5") for name in ("diags", "keys")}
    orion.init_scheme(
        {
            "ckks_params": {
                "LogN": given["log_n"],
                "LogQ": chain,
                "LogP": special,
                "LogScale": 40,
                "H": weight,
                "RingType": "standard",
            },
            "boot_params": {"LogP": BOOTSTRAP if given["network"] == "resnet20" else special},
            "orion": {
                "margin": 2,
                "embedding_method": "hybrid",
                "backend": "lattigo",
                "fuse_modules": True,
                "debug": False,
                "diags_path": stored["diags"],
                "keys_path": stored["keys"],
                "io_mode": "none" if folder is None else "save",
            },
        }
    )
    network: Any = make(dict(np.load(given["weights"])))
    network.eval()
    orion.fit(network, samples[:1])
    level = orion.compile(network)
    network.he()
    return network, level


def main() -> None:
    """Serve until the input ends."""
    # Orion writes to the standard output: answers go another way.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    clock = time.perf_counter
    given = json.loads(sys.stdin.readline())
    torch.set_num_threads(given["threads"])
    samples = torch.from_numpy(np.load(given["samples"]))
    start = clock()
    network, level = compiled(given, samples)
    first = {"version": version("orion-fhe"), "compile_s": clock() - start, "level": level}
    print(json.dumps({**first, "peak_rss_bytes": peak_rss_bytes()}), file=answers, flush=True)
    for line in sys.stdin:
        place = json.loads(line)["place"]
        start = clock()
        ciphertext = orion.encrypt(orion.encode(samples[place : place + 1], level))
        encrypted = clock()
        result = network(ciphertext)
        evaluated = clock()
        scores = result.decrypt().decode().flatten().tolist()
        answer = {
            "scores": scores,
            "encrypt_s": encrypted - start,
            "seconds": evaluated - encrypted,
            "decrypt_s": clock() - evaluated,
            "peak_rss_bytes": peak_rss_bytes(),
        }
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
