#!/bin/sh
# The harness asks for dependencies by this name. Keywright is the only one.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
python=$(cat "$root/submission/python")
"$python" -c 'import keywright' || { echo "Keywright is not installed for $python" >&2; exit 1; }
