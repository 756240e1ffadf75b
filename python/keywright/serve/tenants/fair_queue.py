"""A queue of evaluations or connections, whose holders share the time that they take."""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import Generic, TypeVar

from keywright.serve.tenants.holders import MANY

Item = TypeVar("Item")


class FairQueue(Generic[Item]):
    """A queue whose holders share the time that serving its items takes (`charge`): start-time fair queueing
    (Goyal, Vin and Cheng, IEEE/ACM Transactions on Networking 5(5), 1997).

    The clock of the queue is the start of the item that was taken last. An item of a holder starts where its
    last one ended, or now if that is past; the earliest start is next. A client that asks now and then
    therefore waits for no second item of another holder, and one with many short items gets as much time as
    one with few long ones. Of holders with one start, the one whose last turn was the longest ago is next;
    without charges they take turns. Within the turns of a holder, its key sets take turns.
    """

    def __init__(self) -> None:
        self._lines: dict[str, OrderedDict[str, list[Item]]] = {}
        self._ends: OrderedDict[str, float] = OrderedDict()
        """Where the last item of a holder ended, in seconds of the clock; the last holder at the end."""
        self._now = 0.0

    def __len__(self) -> int:
        return sum(map(self.count, self._lines))

    def count(self, holder: str) -> int:
        """Return the number of items of a holder."""
        return sum(map(len, self._lines.get(holder, {}).values()))

    def line(self, holder: str, key_set: str = "") -> Sequence[Item]:
        """Return the items of a key set, the next one first."""
        lines = self._lines.get(holder)
        return () if lines is None else tuple(lines.get(key_set, ()))

    def put(self, item: Item, holder: str, key_set: str = "", place: int | None = None) -> None:
        """Add an item, behind the others of its key set or at a place among them."""
        line = self._lines.setdefault(holder, OrderedDict()).setdefault(key_set, [])
        line.insert(len(line) if place is None else place, item)

    def following(self, busy: Collection[str] = ()) -> str | None:
        """Return the holder whose turn is next; None if there is none but ``busy`` ones."""
        starts = {name: self._start(name) for name in self._lines if name not in busy}
        first = [name for name, start in starts.items() if start == min(starts.values())]
        new = [name for name in first if name not in self._ends]
        return new[0] if new else next((name for name in self._ends if name in first), None)

    def _start(self, holder: str) -> float:
        return max(self._now, self._ends.get(holder, 0.0))

    def take(self, busy: Collection[str] = ()) -> Item:
        """Remove the next item and return it. Its holder and its key set go to the end.

        Args:
            busy: holders that get no turn; another one waits.
        """
        holder = self.following(busy)
        assert holder is not None
        self._now = self._ends[holder] = self._start(holder)
        self._ends.move_to_end(holder)
        if len(self._ends) > MANY:
            self._ends.popitem(last=False)
        lines = self._lines[holder]
        key_set, line = lines.popitem(last=False)
        item = line.pop(0)
        if line:
            lines[key_set] = line
        if not lines:
            del self._lines[holder]
        return item

    def charge(self, holder: str, seconds: float) -> None:
        """Count the time that an item of a holder took, after `take`."""
        if holder in self._ends:
            self._ends[holder] += seconds

    def discard(self, item: Item, holder: str, key_set: str = "") -> bool:
        """Remove an item. Returns whether it was there."""
        lines = self._lines.get(holder, OrderedDict())
        line = lines.get(key_set, [])
        if item not in line:
            return False
        line.remove(item)
        if not line:
            del lines[key_set]
        if not lines:
            del self._lines[holder]
        return True
