"""Types of the fixtures of conftest.py, and the folder of what they build.

The simulator imports this file, not conftest.py, of which the repository has another one.
"""

import os
from collections.abc import Callable
from pathlib import Path

# The number of the fault that a simulation has (mutate.py), 0 for none: the sources with all faults are then
# in a build folder of their own. Empty in other runs.
FAULT = os.environ.get("HARDWARE_FAULT", "")
BUILD = Path(__file__).parents[1] / ("build/faulty" if FAULT else "build")

Simulate = Callable[..., Path]
Vectors = Callable[..., Path]
CheckVectors = Callable[..., None]
