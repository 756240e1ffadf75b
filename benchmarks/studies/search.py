"""`python -m studies.search`: an encrypted query of a plain index, with its recall.

The vectors are normal, which leaves the least distance between neighbours. The best ten of every answer are
compared with those of the rounded vectors, computed in the clear, and with those of the vectors themselves.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
from harness.console import Console
from harness.folders import record_folder
from harness.measurement import machine

CHUNK = 50_000
K = 10


def chunks(count: int, dimension: int) -> Any:
    """The vectors again and again, without holding them: first id and vectors of each part."""
    random = np.random.default_rng(1)
    for start in range(0, count, CHUNK):
        yield start, random.normal(size=(min(CHUNK, count - start), dimension)).astype(np.float32)


def best(count: tuple[int, int], score: Any) -> set[int]:
    """The ids of the ten best scores, computed part by part."""
    scores = np.concatenate([score(vectors) for _, vectors in chunks(*count)])
    return set(np.argsort(-scores, kind="stable")[:K].tolist())


def measure(count: int, dimension: int, threads: int, queries: int, *, one_prime: bool) -> dict[str, Any]:
    """Measure one index: seconds and processor seconds of every query, bytes, memory, recall. With one prime,
    a thin client asks."""
    import keywright as kw
    from keywright import search

    kw.set_threads(threads)
    quantisation = search.Quantisation(dimension, thin=one_prime)
    index = search.Index(quantisation)
    for start, vectors in chunks(count, dimension):
        index.add(range(start, start + len(vectors)), vectors)
    client = search.Client(index.directory(), thin=one_prime)
    keys = client.keys()
    vectors = np.random.default_rng(2).normal(size=(queries, dimension))
    runs, shares = [], []
    for vector in vectors:
        begin = time.perf_counter()
        query = client.query(vector)
        sent = time.perf_counter()
        processor = time.process_time()
        answer = index.answer(query.data, keys)
        processor = time.process_time() - processor
        answered = time.perf_counter()
        shares.append(set(query.top(answer, K)[0].tolist()))
        runs.append(
            {
                "query_s": sent - begin,
                "answer_s": answered - sent,
                "answer_processor_s": processor,
                "read_s": time.perf_counter() - answered,
                "question_bytes": len(query.data),
                "answer_bytes": len(answer),
                "load": os.getloadavg()[0],
            }
        )
    # The peak is of server and client together, before results are compared.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    for vector, ids, run in zip(vectors, shares, runs, strict=True):
        integers, _ = quantisation.query(vector)

        def rounded(rows: Any, integers: Any = integers) -> Any:
            parts = [part.astype(np.float64) for part, _ in quantisation.vectors(rows)]
            return np.concatenate(parts) @ integers.astype(np.float64)

        def cosines(rows: Any, vector: Any = vector) -> Any:
            rows = rows.astype(np.float64)
            return rows @ vector / np.linalg.norm(rows, axis=1)

        run["recall_of_rounded"] = len(ids & best((count, dimension), rounded)) / K
        run["recall_of_exact"] = len(ids & best((count, dimension), cosines)) / K
    return {
        "vectors": count,
        "dimension": dimension,
        "threads": threads,
        "levels": quantisation.levels,
        "thin": one_prime,
        "index_bytes": index.nbytes,
        "key_bytes": len(keys),
        "directory_bytes": len(index.directory()),
        "peak_bytes": peak,
        "runs": runs,
    }


def main() -> None:
    """Measure, write the record, print it."""
    parser = argparse.ArgumentParser(prog="python -m studies.search", description=__doc__)
    parser.add_argument("--vectors", type=int, default=1_000_000, help="vectors (default: 1000000)")
    parser.add_argument("--dimension", type=int, default=128, help="of a vector (default: 128)")
    parser.add_argument("--threads", type=int, default=2, help="of the server (default: 2)")
    parser.add_argument("--queries", type=int, default=5, help="queries (default: 5)")
    parser.add_argument("--thin", action="store_true", help="by a thin client, of an index with one prime")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-search)")
    options = parser.parse_args()
    if min(options.vectors - K + 1, options.dimension, options.threads, options.queries) < 1:
        parser.error(f"at least {K} vectors, and one of everything else")
    sizes = (options.vectors, options.dimension, options.threads, options.queries)
    record = measure(*sizes, one_prime=options.thin)
    record = {"machine": machine.describe(), **record}
    folder = record_folder(options.out, "search")
    text = json.dumps(record, indent=1)
    (folder / "search.json").write_text(f"{text}\n")
    print(text)
    Console().line(f"written: {folder}")
    if any(run["recall_of_rounded"] < 1 for run in record["runs"]):
        raise SystemExit("an answer is not that of the rounded vectors")


if __name__ == "__main__":
    main()
