"""Makes an API key for a tenant: ``python -m keywright.serve.tenants.new_key FILE NAME``.

It writes the key's digest into the accounts file, which is created if it is missing, and prints the key once.
"""

import argparse
import sys
from pathlib import Path

from keywright.errors.service import ConfigurationError

from .accounts import add


def main() -> None:
    """Make a key."""
    parser = argparse.ArgumentParser(prog="python -m keywright.serve.tenants.new_key", description=__doc__)
    parser.add_argument("file", type=Path, help="the accounts file; created if it is missing")
    parser.add_argument("name", help="of the tenant")
    options = parser.parse_args()
    try:
        key = add(options.file, options.name)
    except ConfigurationError as error:
        parser.error(str(error))
    sys.stdout.write(f"{key}\n")


if __name__ == "__main__":
    main()
