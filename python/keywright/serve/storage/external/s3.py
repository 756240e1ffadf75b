"""Objects in S3-compatible storage, by obstore, with a local cache of copies in a folder."""

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import S3Store

from keywright.errors.service import ConfigurationError
from keywright.serve.storage.incoming_file import IncomingFile

from .copies import Copies
from .presigned import access_key, sign_headers

PART_BYTES = 8 << 20
COPIES_BYTES = 64 << 30
"""Maximum bytes of cached copies; the least recently used are dropped."""

TIMEOUT = timedelta(seconds=30)
"""Timeout of a request, including its retries."""


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotFoundError) as error:
        raise FileNotFoundError("there is no such object") from error
    except BaseError as error:
        # The error may contain names and addresses; its first line is the reason.
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise OSError(f"the object storage: {first[:500]}") from error


class S3Objects:
    """Objects in a bucket; see `Objects`.

    Args:
        address: ``s3://BUCKET/PREFIX``, where the prefix is optional. Endpoint and credentials come from the
            usual environment variables: ``AWS_ACCESS_KEY_ID``, ``AWS_SECRET_ACCESS_KEY``, ``AWS_REGION``,
            ``AWS_ENDPOINT_URL``; ``AWS_ALLOW_HTTP=true`` allows an endpoint without TLS.
        copies: folder of cached files for other processes, emptied here.
        copies_bytes: maximum bytes of copies, besides those in use.

    Raises:
        ConfigurationError: the address is malformed, or the environment variables are.
    """

    buffer_bytes = PART_BYTES
    part_bytes = PART_BYTES

    def __init__(self, address: str, copies: Path, copies_bytes: int = COPIES_BYTES) -> None:
        parts = urlsplit(address)
        prefix = parts.path.strip("/")
        if parts.scheme != "s3" or not parts.netloc or "@" in parts.netloc or parts.query:
            raise ConfigurationError(
                "the address of object storage must be s3://BUCKET or s3://BUCKET/PREFIX; its keys come "
                "from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
                code="state_folder",
            )
        try:
            self._store = S3Store(
                parts.netloc,
                prefix=prefix or None,
                client_options={"timeout": TIMEOUT, "allow_http": os.environ.get("AWS_ALLOW_HTTP") == "true"},
                retry_config={"max_retries": 3, "retry_timeout": TIMEOUT},
            )
        except BaseError as error:
            raise ConfigurationError(
                f"the environment does not describe object storage: {error}", code="state_folder"
            ) from error
        self._key = os.environ.get("AWS_ACCESS_KEY_ID")
        self._secret = os.environ.get("AWS_SECRET_ACCESS_KEY")
        self._copies = Copies(copies, copies_bytes, self._bring)

    def put(self, name: str, data: bytes) -> None:
        """Write a whole object."""
        with _errors():
            obstore.put(self._store, name, data, use_multipart=False)

    def append(self, name: str, at: int, data: bytes) -> None:
        """Overwrite an object: object storage cannot append."""
        self.put(name, (self.read(name, 0, at) if at else b"") + data)

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        with _errors():
            if start == 0 and length is None:
                return bytes(obstore.get(self._store, name).bytes())
            size = obstore.head(self._store, name)["size"]
            end = size if length is None else min(size, start + length)
            if end <= start:
                return b""
            return bytes(obstore.get_range(self._store, name, start=start, end=end))

    def sizes(self, prefix: str) -> dict[str, int]:
        """Return the sizes of the objects whose names begin with the prefix."""
        folder = prefix.rpartition("/")[0]
        with _errors():
            listed = obstore.list(self._store, prefix=folder or None)
            return {
                each["path"]: each["size"]
                for chunk in listed
                for each in chunk
                if each["path"].startswith(prefix)
            }

    def delete(self, names: Iterable[str]) -> None:
        with _errors():
            obstore.delete(self._store, list(names))

    def copy(self, name: str, to: str) -> None:
        """Copy an object within the storage."""
        with _errors():
            obstore.copy(self._store, name, to)

    def sign(self, name: str, seconds: int, length: int) -> str | None:
        """Return an address that is signed for this length with the key of the environment; None if the store
        has its key from elsewhere."""
        if self._secret is None:
            return None
        with _errors():
            url = str(obstore.sign(self._store, "PUT", name, timedelta(seconds=seconds)))
        if access_key(url) != self._key:
            return None
        return sign_headers(url, "PUT", {"content-length": str(length)}, self._secret)

    def keep(self, names: Sequence[str]) -> list[str]:
        """Do nothing: a stored object survives a crash."""
        return list(names)

    @contextlib.contextmanager
    def file(self, names: Sequence[str]) -> Iterator[Path]:
        """Return a copy of objects, fetched unless it is cached."""
        with self._copies.hold(names, lambda: self._sizes(names)) as copy:
            yield copy.wait()

    @contextlib.contextmanager
    def incoming(
        self, names: Sequence[str], sizes: Sequence[int], order: Sequence[int]
    ) -> Iterator[Path | IncomingFile]:
        """Return a copy of objects, which may still be fetched."""
        with self._copies.hold(names, lambda: sizes, order) as copy:
            try:
                yield copy.wait() if copy.ended.is_set() else copy.incoming
            except Exception as error:
                if copy.error is not None:
                    raise copy.error from error
                raise

    def forget(self, names: Sequence[str]) -> bool:
        """Drop a copy. Open files stay readable."""
        return self._copies.forget(names)

    def output_path(self, name: str) -> Path:
        """Return a path for a file that `adopt` takes over."""
        return self._copies.folder / name.replace("/", "-")

    def adopt(self, name: str) -> None:
        """Upload an object from a file."""
        path = self.output_path(name)
        with _errors():
            obstore.put(self._store, name, path, chunk_size=PART_BYTES, max_concurrency=2)
        path.unlink(missing_ok=True)

    def close(self) -> None:
        """Delete the copies."""
        self._copies.close()

    def _sizes(self, names: Sequence[str]) -> list[int]:
        with _errors():
            return [obstore.head(self._store, name)["size"] for name in names]

    def _bring(self, name: str, file: BinaryIO) -> int:
        """Write an object's bytes to a file. Returns their number."""
        size = 0
        with _errors():
            for piece in obstore.get(self._store, name).stream(1 << 20):
                size += file.write(piece)
        return size
