#!/bin/sh
# Compile what is compiled once, and write the programs that the harness starts.
set -eu
exec "$(cat "$1/python")" "$1"/*build.py
