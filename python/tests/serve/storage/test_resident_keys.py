"""Key sets in memory, shared by all workers of a machine: waiting, eviction, and sets in use."""

import gc
import hashlib
import json
import os
import random
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from keywright._core import EvaluationKeys
from keywright.client import RemoteModel
from keywright.errors.service import BusyError, EvaluationError, LimitError, ServeError, UnknownKeysError
from keywright.model import Model
from keywright.runtime import run_clear
from keywright.serve import Service, Workers
from keywright.serve.served.model import ServedModel
from keywright.serve.service import ServiceLimits
from keywright.serve.workers import resident_keys, worker
from keywright.serve.workers.resident_keys import Loan, ResidentKeys
from numpy.typing import NDArray
from tests.serve.network import INPUTS, listening

PLENTY = 1 << 40


def descriptor() -> int:
    return os.open(os.devnull, os.O_RDONLY)


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def use(keys: ResidentKeys, name: str, size: int = 40, seconds: float = 1.0) -> Loan:
    with keys.lend(name, size) as loan:
        if not loan.hit:
            loan.keep(descriptor(), seconds)
    return loan


def wait(condition: Callable[[], object]) -> None:
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError("it did not happen")


def test_a_set_that_is_used_often_outlasts_one_that_was_used_last() -> None:
    keys = ResidentKeys(100, lambda: PLENTY)
    for _ in range(3):
        use(keys, "a")
    use(keys, "b")
    assert use(keys, "c").evicted == ["b"]
    keys.close()


def test_a_set_is_loaded_once_and_goes_when_others_need_the_room() -> None:
    keys = ResidentKeys(100, lambda: PLENTY)
    first = use(keys, "a", seconds=9.0)
    assert (first.hit, first.loaded, first.evicted) == (False, 9.0, [])
    assert use(keys, "a").hit
    use(keys, "b")
    with keys.lend("a", 40) as loan:
        held = loan.descriptor
    third = use(keys, "c")
    # Both were last used at the same time; b was quicker to load.
    assert third.evicted == ["b"]
    assert "b" not in keys
    assert held is not None
    assert is_open(held)
    assert (keys.size, keys.count, keys.hits, keys.loads, keys.evictions) == (80, 2, 2, 3, 1)
    keys.forget("a")
    assert not is_open(held)
    assert keys.size == 40
    keys.close()
    assert keys.size == 0


def test_a_set_that_never_fits_is_refused() -> None:
    keys = ResidentKeys(100, lambda: PLENTY)
    with (
        pytest.raises(LimitError, check=lambda error: error.code == "too_large") as error,
        keys.lend("a", 101),
    ):
        pass
    assert (error.value.value, error.value.maximum) == (101, 100)


def test_a_set_in_use_stays_and_others_wait_for_its_memory() -> None:
    keys, got = ResidentKeys(100, lambda: PLENTY), list[Loan]()
    with keys.lend("a", 60) as loan:
        loan.keep(descriptor(), 1.0)
        # A second user of the same set does not wait.
        assert use(keys, "a", 60).hit
        other = threading.Thread(target=lambda: got.append(use(keys, "b", 60)))
        other.start()
        time.sleep(0.1)
        assert not got
        assert "a" in keys
        assert keys.reachable == PLENTY + 60
    other.join()
    assert got[0].evicted == ["a"]
    assert keys.size == 60


def test_one_worker_loads_a_set_while_others_wait() -> None:
    keys, got = ResidentKeys(100, lambda: PLENTY), list[bool]()

    def borrow() -> None:
        with keys.lend("a", 40) as loan:
            got.append(loan.hit)
            if not loan.hit:
                time.sleep(0.05)
                loan.keep(descriptor(), 1.0)

    others = [threading.Thread(target=borrow) for _ in range(3)]

    def fail() -> None:
        with keys.lend("a", 40) as loan:
            assert not loan.hit
            for other in others:
                other.start()
            time.sleep(0.1)
            assert not got
            raise UnknownKeysError("damaged")

    with pytest.raises(UnknownKeysError):
        fail()
    for other in others:
        other.join()
    assert sorted(got) == [False, True, True]
    assert keys.loads == 2


def test_a_set_can_be_used_by_others_before_who_loaded_it_is_done() -> None:
    keys = ResidentKeys(100, lambda: PLENTY)
    with keys.lend("a", 40) as first:
        first.keep(descriptor(), 1.0)
        with keys.lend("a", 40) as second:
            assert second.descriptor is not None
        keys.forget("a")
        # It is removed after its last use, and is another set afterwards.
        assert is_open(second.descriptor)
        assert keys.size == 40
    assert not is_open(second.descriptor)
    assert not use(keys, "a").hit


def test_idle_sets_go_where_the_machine_lacks_memory() -> None:
    left = [1000]
    keys = ResidentKeys(100, lambda: left[0])
    use(keys, "a")
    left[0] = 30
    assert keys.reachable == 70
    assert use(keys, "b").evicted == ["a"]
    # Nothing can be evicted: it waits until other programs free memory.
    keys.forget("b")
    threading.Timer(0.1, lambda: left.__setitem__(0, 1000)).start()
    start = time.monotonic()
    assert use(keys, "c").evicted == []
    assert time.monotonic() - start > 0.05


def test_descriptors_are_within_their_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = ResidentKeys(PLENTY, lambda: PLENTY)
    monkeypatch.setattr(keys, "_most", 3)
    for number in range(5):
        use(keys, str(number))
    assert keys.count == 3
    assert "4" in keys


def test_any_number_of_threads_stay_within_the_budget() -> None:
    """Sixteen borrowers, twenty sets, room for five: no set is loaded twice at a time, none in use is closed,
    and the bytes of all are at most the budget."""
    keys = ResidentKeys(100, lambda: PLENTY)
    loading, most = set[str](), 0
    lock, wrong = threading.Lock(), list[str]()

    def borrow(seed: int) -> None:
        nonlocal most
        draw = random.Random(seed)
        for _ in range(100):
            name = str(int(20 * draw.random() ** 3))
            with keys.lend(name, 20) as loan:
                number = loan.descriptor
                if number is None:
                    with lock:
                        if name in loading:
                            wrong.append(f"{name} is loaded twice")
                        loading.add(name)
                    time.sleep(0.001 * draw.random())
                    with lock:
                        loading.discard(name)
                    if draw.random() < 0.1:
                        continue
                    number = descriptor()
                    loan.keep(number, draw.random())
                most = max(most, keys.size)
                time.sleep(0.001 * draw.random())
                if not is_open(number):
                    wrong.append(f"{name} was closed in use")

    threads = [threading.Thread(target=borrow, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert most == 100
    assert keys.hits + keys.loads == 1600
    assert keys.size <= 100


def test_two_workers_share_one_set(thin: Model, tmp_path: Path) -> None:
    """A set is read once, whichever worker needs it first; a killed worker does not remove it."""
    workers = Workers(2, 4 * thin.resident_key_bytes)
    service = Service(thin, tmp_path, workers=workers)
    samples = np.random.default_rng(1).uniform(0, 1, (6, INPUTS))
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        session.upload_keys()
        errors = list[float]()

        def infer(part: NDArray[np.float64]) -> None:
            errors.append(float(np.abs(session.infer(part) - run_clear(thin.program, part)).max()))

        threads = [threading.Thread(target=infer, args=(part,)) for part in np.split(samples, 6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(errors) == 6
        assert max(errors) < 1e-3
        assert (workers.keys.loads, workers.keys.hits) == (1, 5)
        for each in workers.all:
            each.kill()
        infer(samples[:1])
        # Once more where an order met the process before it was known to be gone.
        assert (workers.keys.loads, workers.keys.hits) in ((1, 6), (1, 7))
        assert workers.keys.size == thin.resident_key_bytes
        # An order that fails takes its keys with it: the next one of that worker has other keys.
        first, order = str(session._identifier), service.evaluations.execution.description(thin.manifest.hash)
        for each in workers.all:
            with pytest.raises(ServeError):
                each.order(do="evaluate", job="", keys=first, bytes=1, messages=["none"], answer="", **order)
        with RemoteModel(server.url, insecure=True).session() as other:
            for _ in range(2):
                outputs = other.infer(samples[:1])
                assert np.abs(outputs - run_clear(thin.program, samples[:1])).max() < 1e-3
    service.close()
    workers.close()


def test_an_evaluation_that_is_cancelled_while_it_waits_is_not_begun(thin: Model) -> None:
    workers = Workers(1, 4 * thin.resident_key_bytes)
    workers.all[0].cancel("job")
    with pytest.raises(EvaluationError, check=lambda error: error.code == "cancelled"):
        workers.all[0].order(do="evaluate", job="job", keys="a", bytes=1)
    assert workers.all[0].pid is None
    workers.close()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other priorities")
def test_evaluations_give_way_to_requests_and_checks(tmp_path: Path) -> None:
    """An upload waited for a processor while evaluations of others ran on all of them."""
    workers, own = Workers(1), os.getpriority(os.PRIO_PROCESS, 0)
    for each, more in ((workers.all[0], worker.PRIORITY), (workers._checker, 0)):
        # Whatever it answers, it has begun.
        with pytest.raises(ServeError):
            each.order(do="check", job="", path=str(tmp_path / "none"), parameters="")
        assert each.pid is not None
        assert os.getpriority(os.PRIO_PROCESS, each.pid) == min(19, own + more)
        group = Path(f"/proc/{each.pid}/autogroup")
        assert not os.access(group, os.W_OK) or group.read_text().split()[-1] == str(more)
    workers.close()


MAPPED = """
import sys
from pathlib import Path
from keywright import Parameters
from keywright._core import EvaluationKeys
from keywright.runtime import run_clear

keys = EvaluationKeys.open_shared(int(sys.argv[1]), Parameters.load(Path(sys.argv[2]), insecure=True))
print(keys.bytes, flush=True)
sys.stdin.readline()
rollup = Path("/proc/self/smaps_rollup").read_text().splitlines()
print(next(int(line.split()[1]) for line in rollup if line.startswith("Pss_Shmem")), flush=True)
sys.stdin.readline()
"""


def test_the_words_of_a_set_are_in_memory_once(thin: Model, key_file: Path, tmp_path: Path) -> None:
    """Three processes: each has its share of the memory (PSS), which adds up to the words."""
    thin.parameters.save(tmp_path / "parameters.kw")
    first = EvaluationKeys.load_shared(key_file, thin.parameters, thin.execution.key_steps)
    number = first.share()
    keys = EvaluationKeys.open_shared(number, thin.parameters)
    assert keys.to_bytes() == EvaluationKeys.load(key_file, thin.parameters).to_bytes()
    del first, keys
    arguments = [sys.executable, "-c", MAPPED, str(number), str(tmp_path / "parameters.kw")]
    processes = [
        subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[number], text=True
        )
        for _ in range(3)
    ]
    shares, size = [], 0
    for step in range(2):
        for process in processes:
            assert process.stdout is not None
            line = int(process.stdout.readline())
            if step:
                shares.append(1024 * line)
            else:
                size = line
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
    for process in processes:
        process.communicate()
    os.close(number)
    assert size == sum(spec.bytes for spec in thin.specs)
    # All but the seeds, and each key up to the end of its last page.
    assert 0.99 * size < sum(shares) < 1.01 * size + 4096 * len(thin.specs)
    assert max(shares) < 0.4 * size


def test_memory_that_is_not_of_keys_is_refused(thin: Model, tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb+") as file, pytest.raises(OSError, match="sealed"):
        EvaluationKeys.open_shared(file.fileno(), thin.parameters)
    with pytest.raises(OSError, match="Bad file descriptor"):
        EvaluationKeys.open_shared(1 << 20, thin.parameters)
    with pytest.raises(OSError, match="load_shared"):
        EvaluationKeys(thin.parameters).share()


@pytest.mark.parametrize("shares", [True, False])
@pytest.mark.parametrize("damaged", [True, False])
def test_keys_are_handed_over_when_they_are_whole(
    shares: bool,
    damaged: bool,
    thin: Model,
    key_file: Path,
    tmp_path: Path,
) -> None:
    """A system without such memory hands over nothing, and damaged keys are never handed over."""
    data, path = bytearray(key_file.read_bytes()), tmp_path / "keys.kw"
    digest = hashlib.sha256(data).hexdigest()
    data[len(data) // 2] ^= damaged
    path.write_bytes(data)
    handed = list[EvaluationKeys]()

    def take(number: int, seconds: float) -> None:
        assert seconds > 0
        handed.append(EvaluationKeys.open_shared(number, thin.parameters))

    served = ServedModel(thin)
    loading = worker.KeyLoading({"path": str(path), "digest": digest}, served, take if shares else None)
    if damaged:
        with pytest.raises(UnknownKeysError):
            loading.wait()
    else:
        loading.wait()
        assert loading.keys.to_bytes() == EvaluationKeys.load(path, thin.parameters).to_bytes()
    assert len(handed) == (shares and not damaged)
    for keys in handed:
        assert keys.to_bytes() == loading.keys.to_bytes()
    # Every key set that was ever loaded stayed in the worker's memory, deleted or not.
    end = weakref.ref(loading)
    del loading
    gc.collect()
    assert end() is None
    with pytest.raises(UnknownKeysError):
        worker.KeyLoading({"path": str(tmp_path / "none"), "digest": digest}, served, take)


@pytest.mark.parametrize("before", [0, 2])
def test_the_keys_of_a_cancelled_evaluation_are_not_read(before: int, thin: Model, key_file: Path) -> None:
    """Neither the next key nor the next megabyte, and they are not called damaged."""
    read, handed = list[int](), list[float]()

    def require() -> None:
        if len(read) == before:
            raise EvaluationError("cancelled", code="cancelled")
        read.append(1)

    order = {"path": str(key_file), "digest": hashlib.sha256(key_file.read_bytes()).hexdigest()}
    assert len(EvaluationKeys.load(key_file, thin.parameters)) > 2
    loading = worker.KeyLoading(order, ServedModel(thin), lambda _, seconds: handed.append(seconds), require)
    with pytest.raises(EvaluationError) as refused:
        loading.wait()
    assert refused.value.code == "cancelled"
    assert (len(read), handed) == (before, [])


def test_an_evaluation_is_refused_where_the_machine_has_no_memory(
    thin: Model, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503 with when to come back, 413 for what never fits; what other keys take does not count."""
    monkeypatch.setattr(resident_keys, "LOOK_EVERY_S", 0.0)
    size, left = thin.resident_key_bytes, [PLENTY]
    workers = Workers(1, 2 * size)
    workers.keys = ResidentKeys(2 * size, lambda: left[0])
    workers.require_memory("a", size, "model", lambda: 7)
    with pytest.raises(LimitError, check=lambda error: error.code == "too_large"):
        workers.require_memory("a", 2 * size + 1, "model", lambda: 7)
    left[0] = size - 1
    with pytest.raises(BusyError, match="ask again in 7 s") as error:
        workers.require_memory("a", size, "model", lambda: 7)
    assert error.value.retry_after == 7
    left[0] = PLENTY
    use(workers.keys, "other", size)
    left[0] = 0
    workers.require_memory("a", size, "model", lambda: 7)
    # What the plan says that an evaluation takes, until one has taken it.
    workers._working["model"] = 10
    with pytest.raises(BusyError):
        workers.require_memory("a", size, "model", lambda: 7)
    workers.all[0].evaluated.add("model")
    workers.require_memory("a", size, "model", lambda: 7)
    workers.close()
    workers.keys.close()


def test_a_refused_evaluation_states_when_to_retry(
    thin: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resident_keys, "LOOK_EVERY_S", 0.0)
    workers = Workers(1, 4 * thin.resident_key_bytes)
    service = Service(thin, tmp_path, workers=workers, limits=ServiceLimits(budget=1 << 33))
    service.prepare()
    assert workers._working[thin.manifest.hash] > 0
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        session.infer(np.zeros((1, INPUTS)))
        assert workers.all[0].evaluated == {thin.manifest.hash}
        workers.keys._lately._call = lambda: -PLENTY
        request = urllib.request.Request(
            f"{server.url}/v1/keys/{session._identifier}/jobs", data=b"x", method="POST"
        )
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(request)
        seconds = int(error.value.headers["Retry-After"])
        # The time of the evaluation above, in whole seconds.
        assert error.value.code == 503
        assert 1 <= seconds < 60
        assert json.load(error.value)["error"]["details"] == {"retry_after": seconds}
    service.close()
    workers.close()
