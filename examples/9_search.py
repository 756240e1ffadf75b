"""9. Similarity search: the nearest of a server's vectors to a query that the server cannot read.

Run with: python examples/9_search.py
"""

import numpy as np
from keywright import search

VECTORS, DIMENSION, K = 10_000, 64, 5


def main() -> None:
    """Index vectors, query them, compare with the result in the clear."""
    random = np.random.default_rng(5)
    vectors = random.normal(size=(VECTORS, DIMENSION))
    expected = vectors[1234] + 0.3 * random.normal(size=DIMENSION)

    # The server rounds its vectors to integers of 16 bits, and tells clients how, and which ids there are.
    index = search.Index.of(vectors, metric="euclidean")

    # The client makes keys once. The question has the same length for every vector.
    client = search.Client(index.directory())
    keys = client.keys()
    query = client.query(expected)

    # The server answers with the encrypted distance of every vector.
    answer = index.answer(query.data, keys)
    question = len(query.data)
    print(
        f"keys {len(keys) / 1e6:.1f} MB, question {question / 1e3:.0f} kB, answer {len(answer) / 1e3:.0f} kB"
    )

    ids, distances = query.top(answer, K)
    exact = np.linalg.norm(vectors - expected, axis=1)
    for place, distance in zip(ids, distances, strict=True):
        print(f"vector {place}: distance {distance:.3f}, exactly {exact[place]:.3f}")
    if ids[0] != 1234 or np.abs(distances - exact[ids]).max() > client.quantisation.error:
        raise AssertionError("the nearest vector or a distance is wrong")


if __name__ == "__main__":
    main()
