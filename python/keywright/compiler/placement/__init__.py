"""Levels: the compilation target, the costs of operations at each level, and the placement of bootstraps."""
