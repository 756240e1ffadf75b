"""Places of a service and turns of its queue: addresses that take all they can keep no other one out."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
from keywright.errors.service import BusyError
from keywright.model import Model
from keywright.serve.configurations import Configuration
from keywright.serve.served.model import ServedModel
from keywright.serve.tenants.fair_queue import FairQueue
from keywright.serve.uploads import admission, eviction, uploaded
from keywright.serve.uploads.uploaded import STALLED_S, UploadedKeys


class Places:
    """Places of a service without accounts, which addresses ask for on a clock of its own.

    Args:
        model: whose keys are asked for.
        patch: sets the clock.
        capacity: number of places.
    """

    def __init__(self, model: Model, patch: pytest.MonkeyPatch, capacity: int) -> None:
        self.now, self._configuration = 0.0, Configuration.of(ServedModel(model))
        for module in (eviction, uploaded):
            patch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))
        self._admission = admission.Admission(capacity=capacity, expiry=400.0)
        self.interval, self.sets = 400.0 * admission.TURN / capacity, dict[str, UploadedKeys]()
        self.delays = set[int]()

    def ask(self, holder: str) -> bool:
        """Whether an address has a place now; it uses the set that it has."""
        if holder not in self.sets and not self.begin(holder):
            return False
        self.sets[holder].used = self.now
        return True

    def begin(self, holder: str, *, stalls: bool = False) -> bool:
        """Whether an address gets a place for a new set, which may be one that stalls."""
        asked = UploadedKeys(holder, "model", self._configuration, 0.0, "", holder)
        asked.since = asked.used = asked.moved = self.now
        asked.parts, asked.ready = {0: 1}, not stalls
        if stalls:
            asked.moved -= 2 * STALLED_S
        try:
            victims = self._admission.with_bytes(asked, list(self.sets.values()))
        except BusyError as refused:
            self.delays.add(refused.retry_after)
            return False
        for victim in victims:
            self.leave(victim.holder)
        self.sets[holder] = asked
        return True

    def leave(self, holder: str) -> None:
        """Delete the set of an address, if it has one."""
        if (left := self.sets.pop(holder, None)) is not None:
            self._admission.leave(left)

    def leave_and_return(self, holder: str) -> None:
        """Delete the set of an address, and ask for a place again at once."""
        self.leave(holder)
        self.ask(holder)


@pytest.mark.parametrize("most", [4, 5, 12])
@pytest.mark.parametrize("evil_pause", [1.0, 7.0, 0.95 * eviction.AWAY_S])
def test_addresses_that_hold_all_places_keep_no_new_one_out(
    thin: Model, monkeypatch: pytest.MonkeyPatch, most: int, evil_pause: float
) -> None:
    """The attack: 16 addresses held all 16 places for as long as they used them."""
    capacity = 4
    places, random = Places(thin, monkeypatch, capacity), np.random.default_rng(most)
    evil, begun, honest = [f"evil {number}" for number in range(most)], 200.0, list[bool]()
    turn = places.interval + max(0.0, evil_pause - 1.0)
    while places.now < begun + (most + 4 * capacity) * (turn + 1.0):
        places.now += 1.0
        for number in np.flatnonzero(random.uniform(size=most) < 1.0 / evil_pause):
            places.ask(evil[number])
        if places.now >= begun and places.now % 5 == 0:
            honest.append(places.ask("honest"))
        assert len(places.sets) <= capacity
    assert places.delays <= set(range(1, 21))
    waited = 5.0 * honest.index(True)
    assert waited <= (max(0, most - capacity) + 1) * (places.interval + eviction.AWAY_S)
    kept = honest[honest.index(True) :]
    lasted = 5.0 * (kept.index(False) if False in kept else len(kept))
    assert lasted >= (capacity - 1) * places.interval - 5.0


@pytest.mark.parametrize("most", [4, 6])
@pytest.mark.parametrize("pause", [1.0, 3.0, 20.0])
def test_addresses_that_leave_and_return_win_no_time(
    thin: Model, monkeypatch: pytest.MonkeyPatch, most: int, pause: float
) -> None:
    """The attack: deleted and opened again, a set was the youngest, and its place went to it and not to the
    address that waited."""
    capacity = 4
    places, held = Places(thin, monkeypatch, capacity), {f"evil {number}": 0 for number in range(most)}
    held["honest"] = 0
    while places.now < 4000.0:
        places.now += 1.0
        for name in [*held][:-1]:
            if places.now % pause == 0:
                places.leave(name)
            places.ask(name)
        if places.now % 5 == 0:
            places.ask("honest")
        for name in places.sets:
            held[name] += 1
    assert held["honest"] > 0.8 * capacity / (most + 1) * 4000.0


@pytest.mark.parametrize("seed", range(12))
def test_no_moves_of_others_win_a_place_or_time(
    thin: Model, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The attacks: 16 addresses whose sets stalled, and were replaced by their own, kept an honest one out
    for ever; some that had had their places for a turn left, and came back as the youngest."""
    capacity, random = 4, np.random.default_rng(seed)
    most = int(random.integers(3, 8))
    places, evil = Places(thin, monkeypatch, capacity), [f"evil {number}" for number in range(most)]
    moves: list[Callable[[str], object]] = [
        places.ask,
        places.leave,
        places.leave_and_return,
        lambda name: places.begin(name, stalls=True),
        lambda name: name in places.sets and places.begin(name, stalls=True),
    ]
    likely = random.dirichlet(np.ones(len(moves)))
    begun = float(random.integers(0, 300))
    waiting = (max(0, most - capacity) + 1) * (places.interval + eviction.AWAY_S)
    honest = list[bool]()
    while places.now < begun + 4000.0:
        places.now += 1.0
        if places.now >= begun and places.now % 5 == 0:
            honest.append(places.ask("honest"))
        for name in random.permutation(evil):
            if random.uniform() < 0.3:
                moves[random.choice(len(moves), p=likely)](str(name))
        assert len(places.sets) <= capacity
    assert 5.0 * honest.index(True) <= waiting
    assert sum(honest) > 0.8 * min(1.0, capacity / (most + 1)) * len(honest)


def test_a_set_that_nobody_uses_gives_way_at_once(thin: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    places = Places(thin, monkeypatch, 4)
    for number in range(4):
        assert places.ask(f"first {number}")
    for _ in range(100):
        places.now += 1.0
        for number in range(1, 4):
            places.ask(f"first {number}")
    assert places.ask("second")
    assert "first 0" not in places.sets
    # Sets of the same holder never do, such as those of a tenant.
    full = [UploadedKeys(f"{n}", "model", places._configuration, 0.0, "a", "tenant a") for n in range(5)]
    for each in full:
        each.parts, each.ready, each.used = {0: 1}, True, -1e6
    with pytest.raises(BusyError) as refused:
        places._admission.with_bytes(full[4], full[:4])
    assert refused.value.retry_after == 0


@pytest.mark.parametrize("seed", range(6))
def test_a_holder_waits_for_its_share_and_one_item_of_each_other(seed: int) -> None:
    """The bound of docs/reference/service.md, whatever the lengths of the others' items."""
    random = np.random.default_rng(seed)
    lengths = {f"other {n}": float(10 ** random.uniform(-1, 2)) for n in range(random.integers(1, 5))}
    queue, now, asked, bound, left, checked = FairQueue[float](), 0.0, 0.0, 0.0, 0, 0
    for number in range(1500):
        for name, longest in lengths.items():
            while queue.count(name) < 3:
                queue.put(float(random.uniform(0.2, 1.0)) * longest, name)
        holder, started = queue.following(), now
        assert holder is not None
        seconds = queue.take()
        if not left and number % 100 == 50 and holder != "honest":
            # In the middle of the item that is served now, after a pause.
            items = [float(each) for each in random.uniform(0.05, 2.0, random.integers(1, 12))]
            asked, left, total = started, len(items), sum(items)
            bound = total + sum(total - items[-1] + longest for longest in lengths.values())
            for each in items:
                queue.put(each, "honest")
        now += seconds
        queue.charge(holder, seconds)
        if holder == "honest" and not (left := left - 1):
            assert now - asked <= bound + 1e-9
            checked += 1
    assert checked >= 5
