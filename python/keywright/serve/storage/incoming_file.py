"""A file that other processes read while its parts arrive.

The parts are adjacent bytes of the file. A second file, the *marks*, has a byte for each part, which is 1
when the part has arrived, and a last byte, which is 1 if no more parts will arrive.
"""

import contextlib
import time
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from keywright.errors.service import ServeError

LOOK_EVERY_S = 0.002
THERE = b"\1"


@dataclass(frozen=True)
class IncomingFile:
    """A file whose parts arrive.

    Attributes:
        path: the file; it has its full length from the start.
        ends: end of each part, in order.
    """

    path: Path
    ends: tuple[int, ...]

    @property
    def marks(self) -> Path:
        """The second file."""
        return self.path.with_suffix(".marks")

    def to_json(self) -> dict[str, object]:
        """Return it for another process, see `from_json`."""
        return {"path": str(self.path), "ends": list(self.ends)}

    @staticmethod
    def from_json(entry: Mapping[str, object]) -> "IncomingFile":
        """Return the file that `to_json` described."""
        ends = entry["ends"]
        if not isinstance(ends, list):
            raise ServeError(f"the ends of parts must be a list, got {type(ends).__name__}")
        return IncomingFile(Path(str(entry["path"])), tuple(map(int, ends)))

    def begin(self) -> None:
        """Create both files. They are readable by this user only."""
        with _create(self.path) as file:
            file.truncate(self.ends[-1])
        with _create(self.marks) as file:
            # Not a hole: a full disk must not prevent a mark.
            file.write(bytes(len(self.ends) + 1))

    def mark(self, number: int) -> None:
        """Record that a part is there."""
        with self.marks.open("r+b", buffering=0) as file:
            file.seek(number)
            file.write(THERE)

    def give_up(self) -> None:
        """Delete both files. Processes that wait for parts get an error."""
        with contextlib.suppress(OSError):
            self.mark(len(self.ends))
        for path in (self.marks, self.path):
            # Windows keeps a file that a worker has open; it is deleted with its folder.
            with contextlib.suppress(OSError):
                path.unlink()

    def wait(self, begin: int, end: int) -> None:
        """Wait until a range of bytes is there.

        Raises:
            OSError: it will not come.
        """
        count = len(self.ends)
        first, last = bisect_right(self.ends, begin), bisect_right(self.ends, max(begin, end - 1))
        with self.marks.open("rb", buffering=0) as file:
            while True:
                file.seek(0)
                marks = file.read(count + 1)
                needed = marks[first : min(last + 1, count)]
                if needed == THERE * len(needed):
                    return
                if marks[count:] != bytes(1):
                    raise OSError("the keys could not be fetched from the object storage")
                time.sleep(LOOK_EVERY_S)


def _create(path: Path) -> BinaryIO:
    path.touch(0o600, exist_ok=False)
    return path.open("wb")
