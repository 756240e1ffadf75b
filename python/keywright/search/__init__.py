"""Similarity search on a server that learns nothing about the query.

The server has an `Index` of vectors in the clear. A `Client` encrypts a vector, and reads from the answer the
exact score of every rounded vector of the index: a cosine, an inner product or a distance. In an
`EncryptedIndex` the vectors are encrypted, too, by the client that queries them.

>>> import numpy as np
>>> from keywright import search
>>> index = search.Index.of(np.eye(4), ids=[10, 11, 12, 13])
>>> client = search.Client(index.directory())
>>> keys = client.keys()
>>> query = client.query([0.1, 0.9, 0.0, 0.2])
>>> ids, scores = query.top(index.answer(query.data, keys), k=2)
>>> ids.tolist()
[11, 13]
"""

from .client import Client, Query
from .encrypted_index import EncryptedIndex
from .index import Index
from .quantisation import Metric, Quantisation
from .shards import IndexProcess, Shard, Shards
from .votes import Vote, from_estimator

__all__ = [
    "Client",
    "EncryptedIndex",
    "Index",
    "IndexProcess",
    "Metric",
    "Quantisation",
    "Query",
    "Shard",
    "Shards",
    "Vote",
    "from_estimator",
]
