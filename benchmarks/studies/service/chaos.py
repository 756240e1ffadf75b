"""Kills processes of a service at random, fills its disk now and then, and counts what is lost.

    cd benchmarks && python -m studies.service.chaos [--seconds 600] [--tenants 6] [--disk 192] [--out FOLDER]

`keywright serve` runs on the loopback with its state in a separate file system, a tmpfs of ``--disk`` MiB.
Where a tmpfs cannot be mounted, the state is in the system's file system, and the disk is never full. Every
few seconds a process of the service is killed with SIGKILL: the one that listens, or a worker. The one that
listens is started again. Now and then a file fills the rest of the disk for a few seconds. Meanwhile
tenants upload keys and send requests. Acknowledged bytes must be there, and accepted jobs must end with the
right answer. Half of the requests wait for their answers: they get the answer, are accepted like the
others, or get no answer at all. Every answer is decrypted and compared. The exit status is 1 if anything
was lost or wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

from harness.folders import record_folder
from harness.measurement import machine
from keywright.model import Manifest, Model

from studies.service.models import save, weights
from studies.service.tenants import Connection, Question, RefusedError, Tenant, Vector

KILL_EVERY_S = (0.5, 6.0)
FULL_EVERY_S, FULL_S = (20.0, 40.0), (1.0, 4.0)
OUTPUTS, MODELS = 64, 2
BOUND = 1e-3
"""Most by which an answer may differ; errors are some 2e-5."""

JOBS_A_SET = 12
"""After about so many answers a tenant deletes its keys and begins anew."""

PATIENCE_S = 60.0
"""After the last kill everything accepted must end within this."""


@dataclass
class Tally:
    """Counts of events, and faults."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    worst_error: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def count(self, what: str, by: int = 1) -> None:
        """Count one event."""
        with self._lock:
            self.counts[what] += by

    def fault(self, what: str) -> None:
        """Record a fault."""
        with self._lock:
            self.faults.append(what)
        sys.stderr.write(f"FAULT {what}\n")

    def error(self, value: float) -> None:
        """Record the error of an answer."""
        with self._lock:
            self.worst_error = max(self.worst_error, value)


class Victim:
    """The service and its processes. Starts it again when it was killed."""

    def __init__(self, models: list[Path], state: Path, log: Path) -> None:
        self._models, self._state, self._log = models, state, log
        self._port = 0
        self.process = self._start()

    @property
    def url(self) -> str:
        """The address on which the service listens."""
        return f"http://127.0.0.1:{self._port}"

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "keywright", "serve", *map(str, self._models), "--state"]
        command += [str(self._state), "--port", str(self._port), "--workers", "2", "--clients", "64"]
        command += ["--memory", "3GiB", "--json", "--log-format", "json"]
        with self._log.open("ab") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        assert process.stdout is not None
        line = process.stdout.readline()
        self.up = bool(line)
        if line:
            self._port = int(json.loads(line)["url"].rpartition(":")[2])
        return process

    def processes(self) -> list[int]:
        """The process of the service, and its children."""
        children: dict[int, list[int]] = {}
        for path in Path("/proc").iterdir():
            if path.name.isdigit():
                with contextlib.suppress(OSError, IndexError):
                    parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
                    children.setdefault(parent, []).append(int(path.name))
        family = [self.process.pid]
        for process in family:
            family += children.get(process, [])
        return family

    def kill(self, chosen: random.Random, tally: Tally) -> None:
        """Kill one process. If it was the one that listens, start the service again."""
        victim = chosen.choice(self.processes())
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
            tally.count("kills")
        if victim == self.process.pid:
            tally.count("kills of the server")
            self.again(tally)

    def again(self, tally: Tally) -> None:
        """Start the service until it runs. On a full disk a start may fail."""
        while True:
            self._end()
            self.process = self._start()
            if self.up:
                return
            tally.count("starts that failed")
            time.sleep(0.3)

    def close(self) -> None:
        """End the service."""
        self.process.terminate()
        self._end()

    def _end(self) -> None:
        self.process.wait(60.0)
        if self.process.stdout is not None:
            self.process.stdout.close()


class Asker(threading.Thread):
    """A tenant that uploads keys, sends requests, compares the answers, and starts again."""

    def __init__(
        self,
        number: int,
        manifests: list[Manifest],
        layers: list[Vector],
        victim: Victim,
        tally: Tally,
        folder: Path,
    ) -> None:
        super().__init__(daemon=True)
        self._tenant = Tenant(number, manifests[0])
        self._manifests, self._layers, self._victim, self._tally = manifests, layers, victim, tally
        self._random, self.stop = random.Random(number), threading.Event()
        self.deadline = float("inf")
        path = folder / f"{number}.kw"
        self._tenant.save_keys(path)
        self._keys = path.read_bytes()
        self._connection: Connection | None = None

    def run(self) -> None:
        """Send requests until `stop`, then wait for the accepted ones."""
        try:
            self._live()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            self._tally.fault(f"a tenant: {error!r}")
        finally:
            if self._connection is not None:
                self._connection.close()

    def _live(self) -> None:
        while not self.stop.is_set():
            keys = self._upload()
            if keys is None:
                continue
            while not self.stop.is_set() and self._random.random() > 1 / JOBS_A_SET:
                if not self._ask(keys):
                    break
            with contextlib.suppress(RefusedError, OSError, http.client.HTTPException):
                self._connected().request("DELETE", f"/v1/keys/{keys}")

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = Connection(self._victim.url)
        return self._connection

    def _try(self, method: str, path: str, body: bytes | None = None) -> bytes | None:
        """The body of an answer, as of `_exchange`."""
        reply = self._exchange(method, path, body)
        return None if reply is None else reply[1]

    def _exchange(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes] | None:
        """An answer; None if it is missing for a reason that leaves open whether the request was accepted."""
        try:
            return self._connected().exchange(method, path, body)
        except (OSError, http.client.HTTPException) as error:
            self._connection = None
            self._tally.count(f"no answer: {type(error).__name__}")
        except RefusedError as error:
            if error.status in (404, 409, 410) or error.code == "evaluation_failed":
                raise
            self._tally.count(f"refused: {error.status} {error.code}")
        time.sleep(0.1)
        return None

    def _upload(self) -> str | None:
        """Upload keys until they are complete. None if the study ended before."""
        opening = self._try("POST", "/v1/keys", json.dumps({"model": self._manifests[0].hash}).encode())
        if opening is None:
            return None
        keys, accepted = str(json.loads(opening)["keys"]), 0
        while not self.stop.is_set():
            try:
                piece = self._keys[accepted:][: self._random.randrange(1, 1 << 20)]
                path = f"/v1/keys/{keys}/parts?offset={accepted}"
                told = self._try("PUT", path, piece)
                if told is None:
                    told = self._try("GET", f"/v1/keys/{keys}")
            except RefusedError as error:
                if error.code != "wrong_offset":
                    self._tally.fault(f"key set {keys}, {accepted} bytes accepted: {error}")
                    return None
                told = self._try("GET", f"/v1/keys/{keys}")
            if told is None:
                continue
            entry = json.loads(told)
            if entry["received"] < accepted:
                self._tally.fault(f"key set {keys}: {accepted} bytes accepted, {entry['received']} are there")
                return None
            self._tally.count("bytes accepted", entry["received"] - accepted)
            accepted = entry["received"]
            if entry["ready"]:
                self._tally.count("key sets complete")
                return keys
        return None

    def _ask(self, keys: str) -> bool:
        """Get an answer to a question. False if the server no longer has the keys."""
        which = self._random.randrange(len(self._layers))
        question = self._tenant.question(self._layers[which])
        path = f"/v1/keys/{keys}/jobs?model={self._manifests[which].hash}"
        waits = self._random.random() < 0.5
        try:
            reply = self._exchange("POST", path + "&wait=5" * waits, question.message)
        except RefusedError as error:
            self._tally.fault(f"complete key set {keys}: {error}")
            return False
        if reply is None:
            return True
        status, body = reply
        if status == HTTPStatus.OK:
            if not waits:
                self._tally.fault("a request that does not wait was answered with ciphertexts")
            self._tally.count("answered with the request")
            self._compare(question, body, "a request")
            return True
        job = str(json.loads(body)["job"])
        self._tally.count("jobs accepted")
        while time.monotonic() < self.deadline:
            try:
                answer = self._answer(job)
            except RefusedError as error:
                self._tally.fault(f"accepted job {job}: {error}")
                return True
            if answer is not None:
                self._tally.count("jobs answered")
                self._compare(question, answer, f"job {job}")
                return True
        self._tally.fault(f"accepted job {job} did not end in time")
        return False

    def _compare(self, question: Question, answer: bytes, of: str) -> None:
        """Decrypt an answer and compare it."""
        difference = self._tenant.error(question, answer)
        self._tally.error(difference)
        if not difference < BOUND:
            self._tally.fault(f"the answer of {of} differs by {difference}")

    def _answer(self, job: str) -> bytes | None:
        told = self._try("GET", f"/v1/jobs/{job}")
        if told is None:
            return None
        entry = json.loads(told)
        if entry["state"] == "failed":
            raise RefusedError(500, told)
        if entry["state"] != "done":
            time.sleep(0.02)
            return None
        return self._try("GET", f"/v1/jobs/{job}/result")


@contextmanager
def small_disk(mebibytes: int) -> Iterator[tuple[Path, bool]]:
    """A folder on a separate file system, if this process may mount one."""
    with tempfile.TemporaryDirectory(prefix="keywright.", ignore_cleanup_errors=True) as folder:
        options = ["-o", f"size={mebibytes}m,mode=700"]
        mount = ["mount", "-t", "tmpfs", *options, "keywright", folder]
        mounted = (
            os.name == "posix" and subprocess.run(mount, capture_output=True, check=False).returncode == 0
        )
        try:
            yield Path(folder), mounted
        finally:
            if mounted:
                subprocess.run(["umount", "-l", folder], check=False)


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """Fill the file system of a folder while the context is open."""
    path = folder / "ballast"
    try:
        with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 16))
        with path.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(64))
        yield
    finally:
        path.unlink(missing_ok=True)


def fill(disk: Path, stop: threading.Event, seconds: float, seed: int, tally: Tally) -> None:
    """Fill the disk now and then, at least once within ``seconds``."""
    chosen, first = random.Random(seed), min(1.0, seconds / 2 / FULL_EVERY_S[1])
    while not stop.wait(first * chosen.uniform(*FULL_EVERY_S)):
        first = 1.0
        tally.count("times the disk was full")
        with full_disk(disk):
            stop.wait(chosen.uniform(*FULL_S))


def kill(victim: Victim, seconds: float, seed: int, tally: Tally) -> None:
    """Kill processes now and then for ``seconds``, and longer if nothing was answered yet."""
    chosen, end = random.Random(seed), time.monotonic() + seconds
    while time.monotonic() < end + (0.0 if tally.counts["jobs answered"] else 2 * PATIENCE_S):
        time.sleep(chosen.uniform(*KILL_EVERY_S))
        if victim.process.poll() is not None:
            tally.fault(f"the server ended by itself with {victim.process.returncode}")
            victim.again(tally)
        victim.kill(chosen, tally)


def run(seconds: float, tenants: int, mebibytes: int, seed: int) -> tuple[Tally, bool]:
    """Run the study. Returns the counts, and whether the disk was ever full."""
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="keywright.") as other, small_disk(mebibytes) as (disk, mounted):
        folders = save(Path(other), [OUTPUTS], MODELS)
        manifests = [Model.load(folder).manifest for folder in folders]
        layers = [weights(OUTPUTS, seed) for seed in range(MODELS)]
        victim = Victim(folders, disk / "state", Path(other) / "log")
        askers = [Asker(number, manifests, layers, victim, tally, Path(other)) for number in range(tenants)]
        stop = threading.Event()
        filler = threading.Thread(target=fill, args=(disk, stop, seconds, seed, tally))
        for thread in [*askers, *([filler] if mounted else [])]:
            thread.start()
        try:
            kill(victim, seconds, seed, tally)
        finally:
            stop.set()
            if mounted:
                filler.join()
            for asker in askers:
                asker.deadline = time.monotonic() + PATIENCE_S
                asker.stop.set()
            for asker in askers:
                asker.join(2 * PATIENCE_S)
                if asker.is_alive():
                    tally.fault("a tenant waits for ever")
            victim.close()
        if tally.faults:
            sys.stderr.write((Path(other) / "log").read_text(encoding="utf-8", errors="replace"))
    return tally, mounted


def main() -> None:
    """Run the study and write its record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--tenants", type=int, default=6)
    parser.add_argument("--disk", type=int, default=192, help="MiB of the file system")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    tally, mounted = run(options.seconds, options.tenants, options.disk, options.seed)
    counts = dict(sorted(tally.counts.items()))
    entry = {
        "seconds": options.seconds,
        "tenants": options.tenants,
        "seed": options.seed,
        "disk_MiB": options.disk if mounted else None,
        "counts": counts,
        "worst_error": tally.worst_error,
        "bound": BOUND,
        "faults": tally.faults,
        "machine": machine.describe(),
    }
    folder = record_folder(options.out, "service")
    (folder / "chaos.json").write_text(json.dumps(entry, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(entry, indent=1))
    sys.exit(1 if tally.faults else 0)


if __name__ == "__main__":
    main()
