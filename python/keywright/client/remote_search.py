"""The client of a search index on a server.

>>> with RemoteSearch("http://127.0.0.1:8700") as remote:       # doctest: +SKIP
...     ids, scores = remote.top(vector, k=10)
"""

import contextlib
import hashlib
from collections.abc import Collection, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright._copies import Unpicklable
from keywright._core import SecretKey
from keywright.errors import FormatError, MismatchError, NoiseError, ParameterError
from keywright.errors.service import (
    BadRequestError,
    InvalidReplyError,
    OtherModelError,
    UnknownJobError,
    UnknownKeysError,
)
from keywright.model.served import framing
from keywright.search import Client, Query
from keywright.search.directory import read_directories
from keywright.search.messages import AnswerPart, query_ciphertext

from .connection import DEADLINE_S, SHORT_S, within
from .exchange import RETRIES, Exchange, Progress, Steps
from .key_owner import KeyOwner, Uploads

DIRECTORY_BYTES = 256 << 20
"""Most bytes of the directory of a shard."""

FRAME_BYTES = 4
"""Bytes before the scores of an answer."""


class RemoteSearch(
    Exchange,
    KeyOwner,
    Unpicklable,
    elsewhere="store client.secret.to_bytes(), and pass the key as secret= to one in the other process",
):
    """A search index on a server, and its client: the secret key stays in this process.

    Thread safety: any number of threads may use one at the same time, except for `refresh` and `close`.

    Args:
        url: URL of the server.
        pinned: expected SHA-256 of the index's directory, by which the server names it; by default the first
            that is served. Several are shards of one index.
        secret: a secret key of an earlier client, which an `EncryptedIndex` needs: the one that encrypted the
            vectors. A new key by default.
        key: API key, for a server with accounts.
        direct: as for `RemoteModel`.
        thin: as for `keywright.search.Client`.

    Raises:
        UnreachableError: there is no server, or it does not send the directory within 30 seconds.
        FormatError: the server has no index at this address, or shards that do not belong together.
        OtherModelError: the hash differs, or is unknown.
        MismatchError: the secret belongs to another index.

    Attributes:
        client: encrypts queries, and vectors of an `EncryptedIndex`; its `secret` is for `secret=`.
        slowest, stalled: as for `RemoteModel`.
    """

    def __init__(
        self,
        url: str,
        pinned: str | Sequence[str] | None = None,
        secret: SecretKey | None = None,
        key: str | None = None,
        direct: bool | Collection[str] = True,
        *,
        thin: bool = False,
    ) -> None:
        Exchange.__init__(self, url, key, direct)
        self._pinned = (pinned,) if isinstance(pinned, str) else pinned
        with within(SHORT_S, longer=""):
            self._hashes, directory = self._fetch(self._pinned)
        self.client = Client(directory, secret, thin=thin)
        KeyOwner.__init__(self, self.client.secret, "connect again with a new client")

    @property
    def _server(self) -> Exchange:
        return self

    def __len__(self) -> int:
        """Number of vectors of the index."""
        return len(self.client)

    def _fetch(self, hashes: Sequence[str] | None) -> tuple[dict[tuple[bytes, bytes], str], bytes]:
        """Return the hash of each shard, by its identity and revision, and their directories."""
        paths = ["/v1/model"] if hashes is None else [f"/v1/models/{name}" for name in hashes]
        shards = [self.request("GET", path, limit=DIRECTORY_BYTES) for path in paths]
        names = [hashlib.sha256(shard).hexdigest() for shard in shards]
        for name, expected in zip(names, hashes or names, strict=True):
            if name != expected:
                raise OtherModelError(
                    f"the server has the index {name}, but {expected} is expected",
                    found=name,
                    expected=expected,
                )
        table = dict[tuple[bytes, bytes], str]()
        for name, shard in zip(names, shards, strict=True):
            first, *others = read_directories(shard)
            if others:
                raise FormatError("the server sends several directories for one index", code="field")
            table[first.index, first.revision] = name
        return table, b"".join(shards)

    def refresh(self, *, deadline: float = SHORT_S) -> None:
        """Fetch the directory again, for example after a changed index has replaced this one, within
        ``deadline`` seconds. Uploaded keys stay valid.

        Raises:
            FormatError: the index now rounds vectors in another way.
            ServeError: errors as above.
        """
        with within(deadline):
            hashes, directory = self._fetch(self._pinned)
        self._hashes |= hashes  # and those of before: an interrupt leaves either directory
        self.client.update(directory)
        self._hashes = hashes

    def _upload_keys(self, uploads: Uploads, progress: Progress | None = None) -> None:
        with self._uploading:
            if not self._uploaded:
                name = next(reversed(self._hashes.values()))
                self._upload(uploads, self.client.quantisation.key_specs, name, progress)

    def top(
        self, vector: ArrayLike, k: int, *, deadline: float = DEADLINE_S
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the best vectors, best first: the largest scores, or the smallest distances.

        Args:
            vector: (dimension,).
            k: number of results.
            deadline: seconds that the call may take with all its retries.

        Returns:
            (k,) ids and (k,) scores.

        Raises:
            SearchError: the vector or `k` is refused, before anything is sent; see `Client.query` and
                `Query.top`.
            InvalidReplyError: the server's answer cannot be read.
            RetiredError: the index has changed, or is served no more; call `refresh` and ask again.
            UnreachableError: the server does not come back, or the deadline is over.
            ServeError: a refusal of the server.
        """
        query = self.client.query(vector)
        query.require_count(k)
        answer = self._answer(query, deadline)
        with _reading():
            return query.top(answer, k)

    def scores(
        self, vector: ArrayLike, *, deadline: float = DEADLINE_S
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the ids of all vectors, and the score of each; errors as for `top`."""
        query = self.client.query(vector)
        answer = self._answer(query, deadline)
        with _reading():
            return query.scores(answer)

    def _answer(self, query: Query, deadline: float) -> list[AnswerPart]:
        """Ask every shard, and return their answers. A directory of a few bytes can state millions of places:
        an answer is as long as they need, and is not copied again."""
        message = framing.join([query_ciphertext(query.data)])
        parts = []
        with within(deadline):
            for index, revision, places in query.shards:
                if not places:
                    continue
                name = self._hashes[index, revision]
                limit = FRAME_BYTES + query.answer_bytes(places)
                try:
                    (scores,) = framing.split(self._evaluated(name, message, limit), 1)
                except BadRequestError as error:
                    raise InvalidReplyError(f"the answer of the server cannot be read: {error}") from error
                parts.append(AnswerPart(query.tag, index, revision, scores))
        return parts

    def _evaluated(self, name: str, message: bytes, limit: int) -> bytes:
        """Ask one shard. A lost request and lost keys are sent again."""
        uploads, steps, failures = Uploads(), Steps(), 0
        while True:
            with self._uploading:
                self._upload_keys(uploads)
                keys = str(self._identifier)
            path = f"/v1/keys/{keys}/jobs?model={name}"
            try:
                return self.evaluate(path, message, limit, lambda done, total: None, steps, model=name)
            except (UnknownJobError, UnknownKeysError) as error:
                if failures == RETRIES:
                    raise
                failures += 1
                if isinstance(error, UnknownKeysError):
                    self._lose_keys(keys)


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    """Turn what is wrong with an answer into one refusal."""
    try:
        yield
    except (FormatError, MismatchError, NoiseError, ParameterError) as error:
        raise InvalidReplyError(f"the answer of the server cannot be read: {error}") from error
