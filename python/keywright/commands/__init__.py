"""The commands of ``keywright``, one per file; see `keywright.cli`."""
