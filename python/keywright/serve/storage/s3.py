"""Objects in S3-compatible storage, by obstore, with a local cache of copies in a folder."""

import contextlib
import hashlib
import os
import shutil
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import S3Store

from ..errors import StateFolderError

PART_BYTES = 8 << 20
FETCHES = 4
"""Objects that are fetched at once, each with `PART_BYTES` in memory."""

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
        StateFolderError: the address is malformed, or the environment variables are.
    """

    buffer_bytes = PART_BYTES
    part_bytes = PART_BYTES

    def __init__(self, address: str, copies: Path, copies_bytes: int = COPIES_BYTES) -> None:
        parts = urlsplit(address)
        prefix = parts.path.strip("/")
        if parts.scheme != "s3" or not parts.netloc or "@" in parts.netloc or parts.query:
            raise StateFolderError(
                "the address of object storage must be s3://BUCKET or s3://BUCKET/PREFIX; its keys come "
                "from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
        try:
            self._store = S3Store(
                parts.netloc,
                prefix=prefix or None,
                client_options={"timeout": TIMEOUT, "allow_http": os.environ.get("AWS_ALLOW_HTTP") == "true"},
                retry_config={"max_retries": 3, "retry_timeout": TIMEOUT},
            )
        except BaseError as error:
            raise StateFolderError(f"the environment does not describe object storage: {error}") from error
        shutil.rmtree(copies, ignore_errors=True)
        copies.mkdir(parents=True, mode=0o700)
        self._copies, self._most = copies, copies_bytes
        self._lock = threading.Lock()
        self._held: dict[Path, int] = {}
        self._used: dict[Path, int] = {}
        self._fetching: dict[Path, threading.Lock] = {}

    def put(self, name: str, data: bytes) -> None:
        """Write a whole object."""
        with _errors():
            obstore.put(self._store, name, data, use_multipart=False)

    def append(self, name: str, at: int, data: bytes) -> None:
        """Overwrite an object: object storage cannot append."""
        self.put(name, (self.read(name, 0, at) if at else b"") + data)

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        """Return bytes of an object."""
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
        """Delete objects."""
        with _errors():
            obstore.delete(self._store, list(names))

    def copy(self, name: str, to: str) -> None:
        """Have the storage copy an object."""
        with _errors():
            obstore.copy(self._store, name, to)

    def sign(self, name: str, seconds: int) -> str | None:
        """An address that is signed with the key of the environment."""
        with _errors():
            return str(obstore.sign(self._store, "PUT", name, timedelta(seconds=seconds)))

    def keep(self, names: Sequence[str]) -> list[str]:
        """Do nothing: a stored object survives a crash."""
        return list(names)

    @contextlib.contextmanager
    def file(self, names: Sequence[str]) -> Iterator[Path]:
        """Return a copy of objects, fetched unless it is cached."""
        path = self._copy(names)
        with self._lock:
            self._held[path] = self._held.get(path, 0) + 1
            fetching = self._fetching.setdefault(path, threading.Lock())
        try:
            with fetching:
                if path not in self._used:
                    self._fetch(names, path)
                # Move it to the end, the most recently used.
                with self._lock:
                    self._used[path] = self._used.pop(path, path.stat().st_size)
            yield path
        finally:
            with self._lock:
                self._held[path] -= 1
                if not self._held[path]:
                    del self._held[path], self._fetching[path]

    def forget(self, names: Sequence[str]) -> bool:
        """Drop a copy. Open files stay readable."""
        path = self._copy(names)
        with self._lock:
            there = self._used.pop(path, None) is not None
            path.unlink(missing_ok=True)
            return there

    def made(self, name: str) -> Path:
        """Return a path for a file that `adopt` takes over."""
        return self._copies / name.replace("/", "-")

    def adopt(self, name: str) -> None:
        """Upload an object from a file."""
        path = self.made(name)
        with _errors():
            obstore.put(self._store, name, path, chunk_size=PART_BYTES, max_concurrency=2)
        path.unlink(missing_ok=True)

    def close(self) -> None:
        """Delete the copies."""
        shutil.rmtree(self._copies, ignore_errors=True)

    def _copy(self, names: Sequence[str]) -> Path:
        digest = hashlib.sha256("\n".join(names).encode()).hexdigest()
        return self._copies / f"{digest}.copy"

    def _fetch(self, names: Sequence[str], path: Path) -> None:
        """Fetch objects and concatenate them into a file."""
        with _errors():
            sizes = [obstore.head(self._store, name)["size"] for name in names]
            self._make_room(sum(sizes))
            starts = [sum(sizes[:number]) for number in range(len(sizes))]
            pending = path.with_suffix(".part")
            pending.touch(mode=0o600)

            def bring(name: str, start: int) -> None:
                with pending.open("r+b") as file:
                    file.seek(start)
                    for piece in obstore.get(self._store, name).stream(1 << 20):
                        file.write(piece)

            with ThreadPoolExecutor(FETCHES) as pool:
                for done in [pool.submit(bring, *each) for each in zip(names, starts, strict=True)]:
                    done.result()
        pending.replace(path)

    def _make_room(self, size: int) -> None:
        with self._lock:
            for path in list(self._used):
                if sum(self._used.values()) + size <= self._most:
                    return
                if path not in self._held:
                    del self._used[path]
                    path.unlink(missing_ok=True)
