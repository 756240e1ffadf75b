"""The owner of a secret key, whose evaluation keys are on a server."""

import contextlib
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from keywright._core import KeyGenerator, KeySpec, SecretKey
from keywright.errors import FormatError
from keywright.errors.service import LimitError, ServeError

from .connection import CLOSE_S, within
from .exchange import Exchange, Progress
from .key_upload import send_keys

KEY_SETS = 2
"""Key sets of one secret key that a server may ask for: each one gives it more samples of that key."""


class KeyOwner(ABC):
    """The owner of a secret key, whose evaluation keys are made, uploaded, made again and deleted.

    Args:
        secret: the secret key.
        advice: what to do after `KEY_SETS` of it, for messages.
    """

    def __init__(self, secret: SecretKey, advice: str) -> None:
        self._advice = advice
        self._identifier: str | None = None
        self._uploading = threading.RLock()
        self._folder = tempfile.TemporaryDirectory(prefix="keywright.")
        self._own(secret)

    @property
    @abstractmethod
    def _server(self) -> Exchange:
        """The server that has the keys."""

    def _own(self, secret: SecretKey) -> None:
        """Use a secret key. No key set has been made of it: only here does the count start, because a server
        chooses its answers."""
        self._generator, self._key_sets = KeyGenerator(secret), 0

    @property
    def _key_file(self) -> Path:
        """The keys, until they are uploaded."""
        return Path(self._folder.name) / "keys.kw"

    def _upload(
        self, specs: Sequence[KeySpec], model: str, progress: Progress | None, size: int | None = None
    ) -> None:
        """Make the keys, unless an upload broke off, and upload them.

        Args:
            specs: the keys.
            model: hash of a model that needs them.
            progress: called with bytes sent and bytes in all.
            size: bytes that the server states; none by default.

        Raises:
            LimitError: the server has been given `KEY_SETS`.
            FormatError: the server states another size.
            ServeError: as for `key_upload.send_file`.
        """
        path = self._key_file
        if not path.exists():
            if self._key_sets == KEY_SETS:
                raise LimitError(
                    f"the server asks for key set {KEY_SETS + 1} of one secret key, and at most {KEY_SETS} "
                    f"are made; {self._advice}",
                    what="key_sets",
                    value=KEY_SETS + 1,
                    maximum=KEY_SETS,
                    code="demand",
                )
            # It is gone after `close`.
            path.parent.mkdir(mode=0o700, exist_ok=True)
            self._generator.save_evaluation_keys(path, specs)
            self._key_sets += 1
        total = path.stat().st_size
        if size not in (None, total):
            raise FormatError(
                f"the manifest announces {size} bytes of keys, but they have {total}", code="manifest"
            )
        if self._identifier is None:
            self._identifier = self._server.begin_keys(model)
        send_keys(self._server, self._identifier, path, progress)
        path.unlink()

    @property
    def _uploaded(self) -> bool:
        """Whether the keys are on the server, as far as is known here."""
        return self._identifier is not None and not self._key_file.exists()

    def _drop_keys(self, lost: str | None = None) -> None:
        """Forget the uploaded keys, or those of an identifier if they still are the ones: `upload_keys` makes
        a new set."""
        with self._uploading:
            if lost in (None, self._identifier):
                self._identifier = None
                self._key_file.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self, *, deadline: float = CLOSE_S) -> None:
        """Delete the keys here, and on the server if it can be reached and answers within ``deadline``
        seconds."""
        if self._identifier is not None:
            with contextlib.suppress(ServeError), within(deadline):
                self._server.ask("DELETE", f"/v1/keys/{self._identifier}")
            self._identifier = None
        self._folder.cleanup()
