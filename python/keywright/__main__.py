"""``python -m keywright COMMAND ...``."""

import sys

from keywright.cli import main

sys.exit(main())
