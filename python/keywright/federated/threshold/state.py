"""The server's state of a threshold run: a file without secrets."""

from pathlib import Path

from keywright.errors import FormatError, ParameterError
from keywright.federated.client_state import read, write
from keywright.federated.encoding import Encoding

from .protocol import Roster


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
        values = read(self.path)
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
            raise FormatError(f"{self.path} has no valid roster: {error}", code="contents") from None
        whole = isinstance(session, bytes) and len(session) == 16 and type(count) is type(number) is int
        if not whole or not 1 <= count < 2**32 or not 0 <= number < 2**32:
            raise FormatError(f"{self.path} lacks a session, count or round", code="contents")
        return roster, session, count, number

    def store(self, roster: Roster, session: bytes, count: int, number: int) -> None:
        """Store what a restarted run needs, before any client is asked in round ``number``."""
        lists = {"nodes": list(roster.nodes), "keys": list(roster.keys), "nonces": list(roster.nonces)}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write(self.path, self._declaration | lists | {"session": session, "count": count, "round": number})
