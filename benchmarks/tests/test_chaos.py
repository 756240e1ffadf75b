"""A short form of the study that kills processes of a service and fills its disk."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from studies.service.chaos import Tally, fill, full_disk, run, small_disk


@pytest.mark.full
def test_nothing_accepted_is_lost_while_processes_are_killed_and_the_disk_is_full() -> None:
    tally, mounted = run(7.0, 4, 128, 5)
    assert tally.faults == []
    assert tally.counts["jobs answered"] == tally.counts["jobs accepted"] > 0
    assert tally.counts["key sets complete"] > 0
    assert tally.counts["kills"] > 0
    assert 0.0 < tally.worst_error < 1e-3
    if not mounted:
        pytest.skip("the disk was never full: no file system may be mounted here")
    assert tally.counts["times the disk was full"] > 0


def test_a_full_disk_is_full(tmp_path: Path) -> None:
    with small_disk(1) as (disk, mounted):
        if not mounted:
            pytest.skip("no file system may be mounted here")
        with full_disk(disk), pytest.raises(OSError, match="No space left"):
            (disk / "file").write_bytes(bytes(4096))
        (disk / "file").write_bytes(bytes(4096))


def test_the_disk_is_full_at_least_once(tmp_path: Path) -> None:
    with small_disk(1) as (disk, mounted):
        if not mounted:
            pytest.skip("no file system may be mounted here")
        stop, tally = threading.Event(), Tally()
        filler = threading.Thread(target=fill, args=(disk, stop, 0.1, 0, tally))
        filler.start()
        stop.wait(1.0)
        stop.set()
        filler.join()
        assert tally.counts["times the disk was full"] == 1
