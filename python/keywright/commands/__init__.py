"""The commands of ``keywright``, one per file, and `helpers` that they share; see `keywright.cli`."""
