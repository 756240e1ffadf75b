"""Encrypts values with TenSEAL, one per ciphertext or packed: a JSON object per line in, one per line out.

A request has `values` and `way`: "scalar" is one `ckks_vector` of one value for each; "packed" is one
`ckks_vector` of all. The answer has the seconds, and the largest error of every eighth scalar or of all
packed values.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import tenseal
from harness.measurement.clock import timed
from harness.programs.peer import peak_rss_bytes


def one_by_one(context: Any, values: list[float]) -> list[Any]:
    """One ciphertext for each value."""
    return [tenseal.ckks_vector(context, [value]) for value in values]


def main() -> None:
    """Serve until the input ends."""
    context = tenseal.context(
        tenseal.SCHEME_TYPE.CKKS, 8192, coeff_mod_bit_sizes=[60, 40, 40, 60], n_threads=1
    )
    context.global_scale = 2.0**40
    for line in sys.stdin:
        request = json.loads(line)
        values: list[float] = request["values"]
        ciphertexts: list[Any]
        if request["way"] == "scalar":
            ciphertexts, seconds = timed(one_by_one, context, values)
            pairs = [(ciphertexts[i].decrypt()[0], values[i]) for i in range(0, len(values), 8)]
        else:
            vector, seconds = timed(tenseal.ckks_vector, context, values)
            ciphertexts = [vector]
            pairs = list(zip(vector.decrypt(), values, strict=True))
        answer = {
            "wall": seconds.wall,
            "cpu": seconds.cpu,
            "error": max(abs(x - y) for x, y in pairs),
            "bytes": len(ciphertexts[0].serialize()),
            "peak_rss_bytes": peak_rss_bytes(),
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
