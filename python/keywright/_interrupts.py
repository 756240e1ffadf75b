"""Ctrl-C while the engine computes.

Python raises `KeyboardInterrupt` between two of its own instructions. A call of the engine is one
instruction, and a bootstrap of a large ring takes seconds. If the call does not return soon, this module ends
the process during it.
"""

import atexit
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = 130
"""Exit status."""

MESSAGE = "interrupted; no file was left half written"

PATIENCE_S = 1.0
"""Seconds that the running operation may continue after ctrl-C."""

SHOW_CURSOR = "\x1b[?25h"
"""Escape sequence that restores the cursor, which a progress bar hides."""


@contextmanager
def ending_at_interrupts() -> Iterator[None]:
    """While the block runs, ctrl-C ends the process after `PATIENCE_S` if the block has not ended by then,
    with status `INTERRUPTED` and after the `atexit` handlers. It has no effect if another kind of signal
    handler is set meanwhile, or outside the main thread, which receives no signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(reader, ended), name="keywright-interrupts", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(before)
        writer.close()
        watcher.join()
        reader.close()


def _watch(reader: socket.socket, ended: threading.Event) -> None:
    """End the process at an interrupt that the main thread does not notice; return when the block has
    ended."""
    while signals := reader.recv(64):
        ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if signal.SIGINT in signals and ours and not ended.wait(PATIENCE_S):
            show = SHOW_CURSOR if sys.stderr.isatty() else ""
            sys.stderr.write(f"{show}{MESSAGE}\n")
            sys.stderr.flush()
            atexit._run_exitfuncs()
            os._exit(INTERRUPTED)
