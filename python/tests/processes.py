"""Runs work in forked children of this process."""

from __future__ import annotations

import os
import pickle
import signal
import traceback
from typing import TYPE_CHECKING, TypeVar, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


class ChildFailed(Exception):
    """A child raised an exception."""


def in_child(work: Callable[[], Result]) -> Result:
    """Return the result of `work` in a forked child.

    Raises:
        ChildFailed: it raised an exception.
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
    try:
        with os.fdopen(reader, "rb") as pipe:
            data = pipe.read()
    finally:
        os.kill(child, signal.SIGKILL)  # it hangs, if the test is stopped while it waits
        os.waitpid(child, 0)
    returned, result = pickle.loads(data)  # noqa: S301 (from this program)
    if not returned:
        raise ChildFailed(result)
    return cast("Result", result)
