"""Types of the fixtures of conftest.py, and the folder of what they build.

The simulator imports this file, not conftest.py, of which the repository has another one.
"""

from collections.abc import Callable
from pathlib import Path

BUILD = Path(__file__).parents[1] / "build"

Simulate = Callable[..., Path]
Vectors = Callable[..., Path]
CheckVectors = Callable[..., None]
