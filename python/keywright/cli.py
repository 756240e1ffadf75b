"""The command line: ``keywright COMMAND ...``."""

import sys
from collections.abc import Sequence

from keywright._interrupts import INTERRUPTED, MESSAGE, ending_at_interrupts


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, 2 after an error, 130 after ctrl-C."""
    try:
        with ending_at_interrupts():
            # Imported here, because the import takes long enough to be interrupted.
            from keywright.commands.command_line import run_command

            return run_command(arguments)
    except KeyboardInterrupt:
        sys.stderr.write(f"{MESSAGE}\n")
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
