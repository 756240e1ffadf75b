"""The owner of a secret key, whose evaluation keys are on a server."""

import contextlib
import os
import tempfile
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from keywright._core import KeyGenerator, KeySpec, SecretKey
from keywright._processes import remove
from keywright._units import format_bytes
from keywright.errors import FormatError, MissingKeyError
from keywright.errors.service import LimitError, ServeError, UnknownKeysError

from .connection import CLOSE_S, DEADLINE_S, within
from .exchange import Exchange, Progress
from .key_upload import send_keys

KEY_SETS = 2
"""Key sets of one secret key that a server may ask for: each one gives it more samples of that key."""

UPLOADS = 3
"""How often a call sends the keys to a server that says each time that it has lost them."""


class Uploads:
    """Counts the uploads of one call, so that a server which loses all of them ends it."""

    def __init__(self) -> None:
        self._begun = 0

    def begin(self, size: int) -> None:
        """Count an upload of some bytes.

        Raises:
            UnknownKeysError: the server has lost `UPLOADS`.
        """
        if self._begun == UPLOADS:
            raise UnknownKeysError(
                f"the server has lost the keys again; this call sent them {UPLOADS} times, "
                f"{format_bytes(size)} each, and sends them no more; ask again later"
            )
        self._begun += 1


class KeyOwner(ABC):
    """The owner of a secret key, whose evaluation keys are made, uploaded, sent again and deleted. Their file
    is kept until then: the same keys sent again tell the server nothing new of the secret.

    Args:
        secret: the secret key.
        advice: what to do after `KEY_SETS` of it, for messages.
    """

    def __init__(self, secret: SecretKey, advice: str) -> None:
        self._advice = advice
        self._identifier: str | None = None
        self._sender = os.getpid()
        self._complete = False
        self._uploading = threading.RLock()
        self._folder = Path(tempfile.mkdtemp(prefix="keywright."))  # deleted by `close`, or with this object
        self._remove = weakref.finalize(self, remove, self._folder, os.getpid())
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
        """The keys, once they are made."""
        return self._folder / "keys.kw"

    def _make_keys(self, specs: Sequence[KeySpec], size: int | None) -> Path:
        """Make the keys if they are not there. Returns their file.

        Args:
            specs: the keys.
            size: bytes that the server states, if it does.

        Raises:
            MissingKeyError: `close` has deleted the keys.
            LimitError: the server has been given `KEY_SETS`.
            FormatError: the server states another size.
        """
        if not self._remove.alive:
            raise MissingKeyError(
                f"this {type(self).__name__} is closed, and its keys are deleted; {self._advice}",
                code="closed",
            )
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
            self._generator.save_evaluation_keys(path, specs)
            self._key_sets += 1
        total = path.stat().st_size
        if size not in (None, total):
            raise FormatError(
                f"the manifest announces {size} bytes of keys, but they have {total}", code="manifest"
            )
        return path

    def upload_keys(self, progress: Progress | None = None, *, deadline: float = DEADLINE_S) -> None:
        """Make the keys that the server needs and upload them; the first request does so otherwise. The
        upload resumes after a broken connection. It starts again if the server has lost it, or serves another
        version of the model. The keys stay in a file of the temporary directory until `close`, and the same
        ones are sent if the server loses them.

        Args:
            progress: called with bytes sent and bytes in all.
            deadline: seconds that the call may take, however slowly the server answers.

        Raises:
            MissingKeyError: it is closed.
            UnreachableError: the server does not come back, or the deadline is over. Call this again to
                resume the upload.
            OtherModelError: the server now has another model than the pinned one, or one that takes other
                inputs.
            UnknownKeysError: the server loses the keys again and again.
            LimitError: the server asks for a third key set of one secret key, for models that need other
                keys.
            ServeError: a refusal of the server.
        """
        with within(deadline), self._uploading:
            self._upload_keys(Uploads(), progress)

    @abstractmethod
    def _upload_keys(self, uploads: Uploads, progress: Progress | None = None) -> None:
        """Upload the keys within a deadline; see `upload_keys`."""

    def _upload(
        self,
        uploads: Uploads,
        specs: Sequence[KeySpec],
        model: str,
        progress: Progress | None,
        size: int | None = None,
    ) -> None:
        """Upload the keys, again if the server loses them meanwhile; nothing is sent if it has them.

        Args:
            uploads: counts the uploads of this call.
            specs: the keys.
            model: hash of a model that needs them.
            progress: called with bytes sent and bytes in all.
            size: bytes that the server states; none by default.

        Raises:
            UnknownKeysError: the server has lost `UPLOADS`.
            LimitError, FormatError: as for `_make_keys`.
            ServeError: as for `key_upload.send_file`.
        """
        with self._uploading:
            path = self._make_keys(specs, size)
            while True:
                uploads.begin(path.stat().st_size)
                try:
                    if self._identifier is None:
                        self._identifier = self._server.begin_keys(model)
                        self._sender = os.getpid()
                    send_keys(self._server, self._identifier, path, progress)
                except UnknownKeysError:
                    self._lose_keys(self._identifier)
                else:
                    self._complete = True
                    return

    @property
    def _uploaded(self) -> bool:
        """Whether the keys are on the server, as far as is known here."""
        return self._identifier is not None and self._complete

    def _lose_keys(self, identifier: str | None) -> None:
        """Note that the server has lost a key set, unless another one has replaced it meanwhile."""
        with self._uploading:
            if identifier == self._identifier:
                self._identifier, self._complete = None, False

    def _drop_keys(self) -> None:
        """Forget the keys, because another model needs others."""
        with self._uploading:
            self._lose_keys(self._identifier)
            self._key_file.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self, *, deadline: float = CLOSE_S) -> None:
        """Delete the keys here, and on the server if it can be reached and answers within ``deadline``
        seconds. Requests then raise `MissingKeyError`. A forked process leaves those of its parent alone."""
        if self._identifier is not None and self._sender == os.getpid():
            with contextlib.suppress(ServeError), within(deadline):
                self._server.ask("DELETE", f"/v1/keys/{self._identifier}")
        self._lose_keys(self._identifier)
        self._remove()
