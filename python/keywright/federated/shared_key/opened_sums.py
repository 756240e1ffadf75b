"""The sums that a client of a shared key opened: one per round, and none after an altered one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flwr.app import Context

from keywright._core import EncryptedSum
from keywright.errors import AggregationError
from keywright.federated.client_state import ClientState

MAX_ALTERED = 8
"""Runs with an altered sum after which a client opens no sum at all."""

MAX_RUNS = 1000
"""Runs that a client remembers."""


class OpenedSums:
    """The memory of a client.

    The server sees whether a client could open a sum. Tags make this answer the same for every altered sum,
    unless the alteration is lost in rounding; the answer then reveals whether an error of the encryption is
    large. A client therefore gives few such answers.

    Args:
        folder: of the client alone; None for Flower's state of the run.
    """

    def __init__(self, folder: Path | None) -> None:
        self._state = ClientState("sums", folder)

    @contextmanager
    def only(self, context: Context, total: EncryptedSum, digest: bytes) -> Iterator[None]:
        """Run a block that opens a sum, if the client may open it. The sum is remembered before the block,
        and that it was altered if the block raises an `AggregationError`.

        Raises:
            AggregationError: the client opened another sum of the round or one of a later round, or found
                that one of this run or several of others were altered.
        """
        with self._state.exclusive(context) as state:
            place = _place(state, total)
            result, opened = state["rounds"][place], state["sums"][place]
            if (total.round, digest) != (result, opened):
                if total.round <= result:
                    raise AggregationError(
                        f"another sum of round {result} was opened; a client opens one sum of a round",
                        reason="round",
                        found=total.round,
                        expected=result + 1,
                    )
                state["rounds"][place], state["sums"][place] = total.round, digest
        try:
            yield
        except AggregationError:
            with self._state.exclusive(context) as state:
                place = _place(state, total)
                state["altered"][place] = 1
            raise


def _place(state: dict[str, Any], total: EncryptedSum) -> int:
    """Return the place of the sum's run in the record.

    Raises:
        AggregationError: no sum of the run is opened.
    """
    for name in ("sessions", "rounds", "sums", "altered"):
        state[name] = list(state.get(name, []))
    if total.session not in state["sessions"]:
        if sum(state["altered"]) >= MAX_ALTERED or len(state["sessions"]) >= MAX_RUNS:
            raise AggregationError(
                f"this client met {sum(state['altered'])} altered sums in {len(state['sessions'])} runs and "
                "opens no others: find out who alters them, make a new key, and empty the client's folder",
                reason="altered",
                found=sum(state["altered"]),
                expected=MAX_ALTERED,
            )
        for name, value in (("sessions", total.session), ("rounds", 0), ("sums", b""), ("altered", 0)):
            state[name].append(value)
    place: int = state["sessions"].index(total.session)
    if state["altered"][place]:
        raise AggregationError(
            "a sum of this run was altered, so this client opens no others: begin a new run",
            reason="altered",
            found=total.round,
        )
    return place
