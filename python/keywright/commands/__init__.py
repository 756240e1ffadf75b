"""The commands of ``keywright``, one per file, and their shared `helpers`; see `keywright.cli`."""
