"""Runs work in forked children of this process."""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")
PATIENCE_S = 30.0


class ChildFailed(Exception):
    """A child raised an exception."""


class ChildHangs(Exception):
    """A child did not answer in time."""


def in_child(work: Callable[[], Result], patience: float = PATIENCE_S) -> Result:
    """Return the result of `work` in a forked child.

    Raises:
        ChildFailed: it raised an exception.
        ChildHangs: it takes too long.
    """
    if not hasattr(os, "fork"):
        pytest.skip("this system does not copy processes")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            try:
                answer: tuple[bool, object] = True, work()
            except BaseException:  # noqa: BLE001 (told to the parent)
                answer = False, traceback.format_exc()
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(answer, pipe)
        finally:
            os._exit(0)  # nothing of the parent is torn down here
    os.close(writer)
    data, deadline = b"", time.monotonic() + patience
    try:
        while select.select([reader], [], [], max(0.0, deadline - time.monotonic()))[0]:
            piece = os.read(reader, 1 << 20)
            if not piece:
                break
            data += piece
        else:
            raise ChildHangs(f"no answer in {patience} s")
    finally:
        os.close(reader)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    returned, result = pickle.loads(data)  # noqa: S301 (from this program)
    if not returned:
        raise ChildFailed(result)
    return cast("Result", result)
