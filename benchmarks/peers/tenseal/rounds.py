"""Rounds of federated averaging with TenSEAL: a JSON object per line in, one per line out.

A request has `updates`, for every client a list of vectors: `packed` makes one `ckks_vector` of each vector,
as the Flower and NVFlare examples do, otherwise one of each value. The answer has the seconds of every
client, of the server and of opening the sum, the bytes of an update and of the sum, and the average.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import tenseal
from harness.measurement.clock import timed
from harness.programs.peer import peak_rss_bytes

Parts = list[bytes]


class Round:
    """What clients and server do, with one context."""

    def __init__(self) -> None:
        self.context = tenseal.context(
            tenseal.SCHEME_TYPE.CKKS, 8192, coeff_mod_bit_sizes=[60, 40, 40, 60], n_threads=1
        )
        self.context.global_scale = 2.0**40

    def client(self, vectors: list[list[float]]) -> Parts:
        """Encrypt and serialise."""
        return [tenseal.ckks_vector(self.context, vector).serialize() for vector in vectors]

    def parse(self, parts: Parts) -> list[Any]:
        """The ciphertexts of an update."""
        return [tenseal.ckks_vector_from(self.context, part) for part in parts]

    def server(self, updates: list[Parts]) -> Parts:
        """Parse, add and serialise."""
        total = self.parse(updates[0])
        for update in updates[1:]:
            for sum_, vector in zip(total, self.parse(update), strict=True):
                sum_ += vector
        return [vector.serialize() for vector in total]

    def open(self, total: Parts, clients: int) -> list[float]:
        """Parse, decrypt and divide."""
        return [value / clients for vector in self.parse(total) for value in vector.decrypt()]


def main() -> None:
    """Serve until the input ends."""
    # TenSEAL writes to the standard output that a vector fills several ciphertexts: answers go another way.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    way = Round()
    for line in sys.stdin:
        request = json.loads(line)
        updates: list[list[list[float]]] = request["updates"]
        if not request["packed"]:
            updates = [[[value] for vector in vectors for value in vector] for vectors in updates]
        sent, seconds = [], []
        for vectors in updates:
            data, took = timed(way.client, vectors)
            sent.append(data)
            seconds.append([took.wall, took.cpu])
        total, server = timed(way.server, sent)
        average, opened = timed(way.open, total, len(updates))
        answer = {
            "client": seconds,
            "server": [server.wall, server.cpu],
            "open": [opened.wall, opened.cpu],
            "update_bytes": sum(map(len, sent[0])),
            "sum_bytes": sum(map(len, total)),
            "average": average,
            "peak_rss_bytes": peak_rss_bytes(),
        }
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
