"""LeNets of squares with Orion: a JSON object per line in, one per line out.

The first request has `weights`, an archive with `conv1`, `conv2`, `dense1` and `dense2` (`.weight` and
`.bias` each), `samples`, an array (count, 1, 28, 28), and `log_n`. Its answer has the seconds of compiling,
keys included. Each later request has `place`, of a sample; the answer has its scores and seconds.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib.metadata import version
from typing import Any

import numpy as np
import orion
import orion.nn as on
import torch
from harness.peer import peak_rss_bytes
from numpy.typing import NDArray

WIDTHS = {14: ([50] + [40] * 7, [50, 50], 1 << 13), 15: ([55] + [40] * 7, [61, 61, 61], 1 << 14)}
"""Primes of the chain, special primes and weight of the secret, by log2 of the ring's degree: seven levels of
40 bits, as the network takes, and a key's modulus within the bound for uniform ternary secrets."""


class LeNet(on.Module):  # type: ignore[misc]
    """Orion's own LeNet for any widths; batch normalisations are in the weights, as Orion has them once it
    has fused them."""

    def __init__(self, weights: dict[str, NDArray[np.float32]]) -> None:
        super().__init__()
        shapes = {name: weights[f"{name}.weight"].shape for name in ("conv1", "conv2", "dense1", "dense2")}
        first, second = (shapes[name] for name in ("conv1", "conv2"))
        self.conv1 = on.Conv2d(first[1], first[0], kernel_size=5, padding=2, stride=2)
        self.act1 = on.Quad()
        self.conv2 = on.Conv2d(second[1], second[0], kernel_size=5, padding=2, stride=2)
        self.act2 = on.Quad()
        self.flatten = on.Flatten()
        self.dense1 = on.Linear(*reversed(shapes["dense1"]))
        self.act3 = on.Quad()
        self.dense2 = on.Linear(*reversed(shapes["dense2"]))
        self.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})

    def forward(self, x: Any) -> Any:
        """Scores of (1, 1, 28, 28), in the clear or encrypted."""
        x = self.act2(self.conv2(self.act1(self.conv1(x))))
        return self.dense2(self.act3(self.dense1(self.flatten(x))))


def compiled(weights: dict[str, NDArray[np.float32]], samples: torch.Tensor, log_n: int) -> tuple[LeNet, int]:
    """The network, ready for ciphertexts, and the level of its input."""
    chain, special, weight = WIDTHS[log_n]
    orion.init_scheme(
        {
            "ckks_params": {
                "LogN": log_n,
                "LogQ": chain,
                "LogP": special,
                "LogScale": 40,
                "H": weight,
                "RingType": "standard",
            },
            "orion": {
                "margin": 2,
                "embedding_method": "hybrid",
                "backend": "lattigo",
                "fuse_modules": True,
                "debug": False,
                "diags_path": "",
                "keys_path": "",
                "io_mode": "none",
            },
        }
    )
    network = LeNet(weights)
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
    network, level = compiled(dict(np.load(given["weights"])), samples, given["log_n"])
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
