"""State of the clients and the server of a threshold run.

A client's record is read and written by one handler at a time; the server's state is a file.
"""

import base64
import json
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from flwr.app import ConfigRecord, Context

from keywright.errors import FormatError, ParameterError
from keywright.federated.encoding import Encoding

from .protocol import Roster

RECORD = "keywright.threshold"
_MAX_BYTES = 1 << 30

_locks: defaultdict[tuple[int, int], threading.RLock] = defaultdict(threading.RLock)
_locks_lock = threading.Lock()


class ClientState:
    """The record of a client, in Flower's state of the run or in a folder.

    Flower keeps its state in the memory of the SuperNode and for one run. A folder outlives both: a run of a
    restarted server finds the shares again.

    Args:
        folder: of this client alone; None for Flower's state.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    @contextmanager
    def exclusive(self, context: Context, *, anew: bool = False) -> Iterator[dict[str, Any]]:
        """Yield the record to one handler at a time: other threads wait, and with a folder other processes
        too.

        It is stored when the block ends, unless the block raises. With a folder it is then on the disk,
        before a reply can leave. Flower stores its state after the reply has left.

        Args:
            context: of the message.
            anew: start with an empty record and discard the old one.
        """
        with _locks_lock:
            lock = _locks[context.run_id, context.node_id]
        with lock:
            if self.folder is None:
                record = context.state.config_records.get(RECORD)
                values: dict[str, Any] = {} if record is None or anew else dict(record)
                yield values
                context.state[RECORD] = ConfigRecord(values)
                return
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self.folder / f"threshold-{context.node_id}.json"
            with path.with_suffix(".lock").open("a") as file:
                _lock(file)
                # A process that was killed while it wrote left a temporary copy.
                for partial in self.folder.glob(f"{path.name}.*.partial"):
                    partial.unlink()
                values = {} if anew else _read(path)
                yield values
                _write(path, values)


def _lock(file: IO[str]) -> None:
    """Wait for the lock of a file; closing the file releases it."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    if path.stat().st_size > _MAX_BYTES:
        raise FormatError(f"{path} exceeds {_MAX_BYTES} bytes", reason="contents", path=path)
    try:
        stored = json.loads(path.read_bytes())
        return {name: _decoded(value) for name, value in stored.items()}
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise FormatError(
            f"{path} is not the state of a threshold client: {error}", reason="contents"
        ) from None


def _write(path: Path, values: dict[str, Any]) -> None:
    data = json.dumps({name: _encoded(value) for name, value in values.items()}).encode()
    replace(path, data)


def replace(path: Path, data: bytes) -> None:
    """Replace a file atomically by one that only its owner can read, and sync it to the disk."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.partial")
    try:
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    if sys.platform != "win32":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _encoded(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    return [_encoded(item) for item in value] if isinstance(value, list) else value


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        return base64.b64decode(value["base64"], validate=True)
    return [_decoded(item) for item in value] if isinstance(value, list) else value


class ServerState:
    """The server's file: roster and session of the keys, and the last round that began.

    Args:
        path: the file.
        encoding: the declaration that the keys were made for.
        threshold: clients that decrypt together.
    """

    def __init__(self, path: Path, encoding: Encoding, threshold: int) -> None:
        self.path = path
        fields = ("bound", "bits", "max_clients", "max_weight", "min_clients")
        self._declaration = {name: getattr(encoding, name) for name in fields} | {"threshold": threshold}

    def load(self) -> tuple[Roster, bytes, int, int] | None:
        """Return roster, session, number of values and last round; None if there is no file yet.

        Raises:
            FormatError: the file is malformed.
            ParameterError: it belongs to another declaration.
        """
        values = _read(self.path)
        if not values:
            return None
        for name, value in self._declaration.items():
            if values.get(name) != value:
                raise ParameterError(
                    f"{self.path} belongs to a run with {name} {values.get(name)!r}, not {value!r}; name "
                    "another file",
                    what=name,
                    value=value,
                )
        try:
            roster = Roster.of(values["nodes"], values["keys"], values["nonces"])
            session, count, number = values["session"], values["count"], values["round"]
        except (KeyError, TypeError) as error:
            raise FormatError(f"{self.path} has no valid roster: {error}", reason="contents") from None
        whole = isinstance(session, bytes) and len(session) == 16 and type(count) is type(number) is int
        if not whole or not 1 <= count < 2**32 or not 0 <= number < 2**32:
            raise FormatError(f"{self.path} lacks a session, count or round", reason="contents")
        return roster, session, count, number

    def store(self, roster: Roster, session: bytes, count: int, number: int) -> None:
        """Store what a restarted run needs, before any client is asked in round ``number``."""
        lists = {"nodes": list(roster.nodes), "keys": list(roster.keys), "nonces": list(roster.nonces)}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _write(self.path, self._declaration | lists | {"session": session, "count": count, "round": number})
