"""Small models on vectors that TenSEAL encrypts: a JSON object per line in, one per line out.

`{"setup": NAME, "log_n": .., "log_q": [..], "log_scale": .., "layers": [..]}` makes a context and keys; a
layer is `{"weights": [[..]], "square": ..}`, weights (inputs, outputs).
`{"run": NAME, "sample": [..]}` encrypts, evaluates and decrypts one sample; everything passes between client
and server as bytes. A matrix of one column is a dot product.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import version
from typing import Any

import tenseal
from harness.measurement.clock import timed
from harness.programs.peer import peak_rss_bytes


class Model:
    """A context with its keys, the server's part of it, and the layers."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.layers = request["layers"]
        self.context = tenseal.context(
            tenseal.SCHEME_TYPE.CKKS, 1 << request["log_n"], coeff_mod_bit_sizes=request["log_q"], n_threads=1
        )
        self.context.global_scale = 2.0 ** request["log_scale"]
        self.context.generate_galois_keys()
        public = self.context.serialize(
            save_public_key=True,  # its matrix products encrypt zeros
            save_secret_key=False,
            save_galois_keys=True,
            save_relin_keys=any(layer["square"] for layer in self.layers),
        )
        self.key_bytes = len(public)
        self.server = tenseal.context_from(public, n_threads=1)

    def encrypt(self, sample: list[float]) -> bytes:
        """The client's message."""
        message: bytes = tenseal.ckks_vector(self.context, sample).serialize()
        return message

    def evaluate(self, message: bytes) -> bytes:
        """The server's work."""
        value = tenseal.ckks_vector_from(self.server, message)
        for layer in self.layers:
            weights = layer["weights"]
            column = [row[0] for row in weights]
            value = value.dot(column) if len(weights[0]) == 1 else value.mm(weights)
            if layer["square"]:
                value = value.square()
        answer: bytes = value.serialize()
        return answer

    def decrypt(self, answer: bytes) -> list[float]:
        """The client's result."""
        result: list[float] = tenseal.ckks_vector_from(self.context, answer).decrypt()
        return result


def main() -> None:
    """Serve until the input ends."""
    # TenSEAL writes remarks to the standard output: answers go another way.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    models: dict[str, Model] = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "setup" in request:
            model, seconds = timed(Model, request)
            models[request["setup"]] = model
            answer = {"version": version("tenseal"), "setup_s": seconds.wall, "key_bytes": model.key_bytes}
        else:
            model = models[request["run"]]
            message, encrypting = timed(model.encrypt, request["sample"])
            reply, evaluating = timed(model.evaluate, message)
            result, decrypting = timed(model.decrypt, reply)
            answer = {
                "encrypt_s": encrypting.wall,
                "evaluate_s": evaluating.wall,
                "evaluate_cpu_s": evaluating.cpu,
                "decrypt_s": decrypting.wall,
                "sent_bytes": len(message),
                "returned_bytes": len(reply),
                "result": result,
                "peak_rss_bytes": peak_rss_bytes(),
            }
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
