"""The command line: ``keywright COMMAND ...``."""

import signal
import sys
from collections.abc import Sequence

from keywright._interrupts import INTERRUPTED, MESSAGE, ending_at_interrupts


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, 2 after an error, 130 after ctrl-C."""
    given = sys.argv[1:] if arguments is None else arguments
    if sys.platform != "win32":
        # Until the server can reload what it has not loaded yet: it ends other commands.
        served = {signal.SIGHUP} if given and given[0] == "serve" else set()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, served)
    try:
        with ending_at_interrupts():
            # Imported here, because the import takes long enough to be interrupted.
            from keywright.commands.command_line import run_command

            return run_command(arguments)
    except KeyboardInterrupt:
        sys.stderr.write(f"{MESSAGE}\n")
        return INTERRUPTED
    finally:
        if sys.platform != "win32":
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


if __name__ == "__main__":
    sys.exit(main())
