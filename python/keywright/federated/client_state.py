"""The memory of a client between messages."""

import base64
import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flwr.app import ConfigRecord, Context

from keywright._files import locked, replace
from keywright._processes import unforked_lock
from keywright._reading.documents import Limits, read_json_file
from keywright._reading.sealed import OWN, require_whole, with_digest
from keywright.errors import FormatError

_LIMITS = Limits(1 << 30, 1 << 20)
"""Shares and masks are bytes in base64."""

_locks: defaultdict[tuple[str, int, int], threading.RLock] = defaultdict(threading.RLock)
_locks_lock = unforked_lock()


class ClientState:
    """The record of a client, in Flower's state of the run or in a folder; read and written by one handler at
    a time.

    Flower keeps its state in the memory of the SuperNode and for one run. A folder outlives both: a run of a
    restarted server finds the shares again.

    Args:
        name: of the record.
        folder: of this client alone; None for Flower's state.
    """

    def __init__(self, name: str, folder: Path | None) -> None:
        self.name, self.folder = name, folder

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
            lock = _locks[self.name, context.run_id, context.node_id]
        with lock:
            if self.folder is None:
                record = context.state.config_records.get(f"keywright.{self.name}")
                values: dict[str, Any] = {} if record is None or anew else dict(record)
                yield values
                context.state[f"keywright.{self.name}"] = ConfigRecord(values)
                return
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self.folder / f"{self.name}-{context.node_id}.json"
            with locked(path):
                values = {} if anew else read(path)
                yield values
                write(path, values)


def read(path: Path) -> dict[str, Any]:
    """Return the values that `write` stored; nothing if there is no file.

    Raises:
        FormatError: it is something else.
    """
    if not path.exists():
        return {}
    if not path.is_file():
        raise FormatError(f"{path} is not a regular file; name another one", code="contents")
    try:
        stored = read_json_file(path, _LIMITS)
        require_whole(stored)
        return {name: _decoded(value) for name, value in stored.items() if name != OWN}
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise FormatError(f"{path} is not a stored state: {error}", code="contents") from None


def write(path: Path, values: dict[str, Any]) -> None:
    """Replace a file by one with these values, numbers, texts, bytes and lists of them, and their SHA-256."""
    stored = {name: _encoded(value) for name, value in values.items()}
    replace(path, json.dumps(with_digest(stored)).encode())


def _encoded(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    return [_encoded(item) for item in value] if isinstance(value, list) else value


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        return base64.b64decode(value["base64"], validate=True)
    return [_decoded(item) for item in value] if isinstance(value, list) else value
