"""The commands of ``keywright``, one per file, and `helpers` that they call; see `keywright.cli`."""
