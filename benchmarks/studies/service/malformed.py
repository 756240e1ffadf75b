"""Sends nonsense, slow requests and very many requests to a server, and watches it and an honest client.

    pip install schemathesis        # in an environment of its own
    cd benchmarks && python -m studies.service.malformed --schemathesis PATH [--requests 10000] [--out FOLDER]

The server is a process of ``keywright serve`` with digits in a small ring without security, because only
requests are measured. It gets, one after the other: valid and invalid requests that schemathesis makes from
its OpenAPI document; bytes that are hardly HTTP; senders of a byte now and then; 500 connections; and as
many calls as an hour has at ten a second, while memory is read. An honest client sends requests the whole
time. Every answer is decrypted and compared with the program in the clear. The record has counts and
memory. Seconds would mean nothing on a shared machine.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import random
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import keywright as kw
import numpy as np
from harness.folders import record_folder
from harness.measurement.machine import describe
from keywright import compiler
from keywright.client import RemoteModel
from keywright.model import Model
from keywright.runtime import run_clear
from prometheus_client.parser import text_string_to_metric_families

OPENAPI = Path(str(files("keywright") / "serve" / "http" / "openapi.json"))
TOLERANCE = 1e-3
HOUR_OF_REQUESTS = 36_000
"""Ten a second for an hour."""

SLOW, CONNECTIONS = 100, 500
HOST = b"Host: 127.0.0.1\r\n"


def make_model(folder: Path, log_n: int = 11) -> Model:
    """Digits for full clients, by default in a ring in which an evaluation takes a tenth of a second."""
    folder.mkdir(parents=True, exist_ok=True)
    parameters = kw.Parameters.from_bits(log_n, [50, 40, 40, 40, 40, 40], [50], 40, insecure=True)
    onnx = Path(str(files("keywright") / "data" / "digits.onnx"))
    model = Model("digits", compiler.compile_program(onnx, compiler.Target(slots=512, levels=5)), parameters)
    model.write(folder)
    return Model.load(folder)


class Process:
    """A server process, with its memory, files and counts."""

    def __init__(self, folder: Path, state: Path, log: Path, *more: str, also: Sequence[Path] = ()) -> None:
        arguments = [
            "serve",
            *map(str, (folder, *also)),
            "--port",
            "0",
            "--state",
            str(state),
            "--json",
            "--log-format",
            "json",
            *more,
        ]
        self.log = log.open("wb")
        # As under a service manager: Linux shares its processors between sessions, and the clients of this
        # program are in another one.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "keywright", *arguments],
            stdout=subprocess.PIPE,
            stderr=self.log,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.url: str = json.loads(self.process.stdout.readline())["url"]
        parts = urlsplit(self.url)
        self.address = (str(parts.hostname), int(parts.port or 0))

    def pids(self) -> list[int]:
        """The server, then its workers."""
        children = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [self.process.pid, *(int(pid) for path in children for pid in path.read_text().split())]

    def memory(self) -> dict[str, int]:
        """Resident bytes, and the proportional share of all its processes."""
        memory = {"server_rss": 0, "server_pss": 0, "workers": -1, "all_rss": 0, "all_pss": 0}
        for pid in self.pids():
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{pid}/smaps_rollup").read_text()
                lines = (line.split() for line in text.splitlines()[1:])
                sizes = {line[0].rstrip(":").lower(): int(line[1]) * 1024 for line in lines}
                memory["workers"] += 1
                for kind in ("rss", "pss"):
                    memory[f"all_{kind}"] += sizes[kind]
                    if pid == self.process.pid:
                        memory[f"server_{kind}"] = sizes[kind]
        return memory

    def processor(self) -> tuple[float, float]:
        """Seconds in which the thread that reads requests ran, and in which it waited for a processor."""
        pid = self.process.pid
        ran, waited, _ = map(int, Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split())
        return ran / 1e9, waited / 1e9

    def open_files(self) -> int:
        """Files and connections of the server."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))  # noqa: PTH208

    def counted(self) -> dict[str, int]:
        """Requests by status, as the server counts them."""
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        statuses: dict[str, int] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name == "keywright_requests_total":
                    status = sample.labels["status"]
                    statuses[status] = statuses.get(status, 0) + int(sample.value)
        return statuses

    def close(self) -> int:
        """End the server. Returns its exit status."""
        self.process.terminate()
        status = self.process.wait(120)
        self.log.close()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status


class Honest:
    """A client that sends requests all the time, and compares every answer."""

    def __init__(self, url: str, model: Model) -> None:
        self._remote, self._program = RemoteModel(url, insecure=True), model.program
        self._shape = model.manifest.input.places.shape
        self.seconds: list[float] = []
        self.wrong = self.failed = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        generator = np.random.default_rng(0)
        with self._remote.session() as session:
            while not self._ended.is_set():
                sample = generator.uniform(0, 1, self._shape)
                start = time.monotonic()
                try:
                    answer = session.infer(sample)
                except kw.KeywrightError as error:
                    self.failed += 1
                    print(f"the honest client: {error}", file=sys.stderr)
                    continue
                self.seconds.append(time.monotonic() - start)
                self.wrong += bool(np.abs(answer - run_clear(self._program, sample)).max() > TOLERANCE)
                # An evaluation a second is enough to see, and leaves the processors to the others.
                self._ended.wait(0.5)

    def part(self, first: int) -> dict[str, float]:
        """The number and the seconds of the answers from one on."""
        seconds = sorted(self.seconds[first:])
        return {
            "answers": len(seconds),
            "median_s": seconds[len(seconds) // 2] if seconds else 0.0,
            "largest_s": seconds[-1] if seconds else 0.0,
        }

    def close(self) -> None:
        """Stop, and delete the keys."""
        self._ended.set()
        self._thread.join()


def schemathesis(program: str, server: Process, requests: int) -> dict[str, Any]:
    """At least this many requests that schemathesis makes from the document, in runs with different seeds."""
    findings: list[str] = []
    before, seed = sum(server.counted().values()), 0
    while (sent := sum(server.counted().values()) - before) < requests:
        seed += 1
        command = [program, "run", str(OPENAPI), "--url", server.url, "--seed", str(seed), "--workers", "1"]
        command += ["--phases", "coverage,fuzzing", "--max-examples", "100", "--continue-on-failure"]
        command += ["--checks", "not_a_server_error,status_code_conformance,content_type_conformance"]
        command[-1] += ",response_schema_conformance,unsupported_method"
        command += ["--suppress-health-check", "all", "--no-color"]
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        marks = ("  ❌ ST", "  🚫 Runtime")
        findings += [line.strip() for line in run.stdout.splitlines() if line.startswith(marks)]
        if run.returncode not in (0, 1):
            raise SystemExit(f"schemathesis failed: {run.stdout[-2000:]}{run.stderr[-2000:]}")
        print(f"schemathesis, seed {seed}: {sent} requests before, {sorted(set(findings))}", file=sys.stderr)
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return {"version": version.strip(), "requests": sent, "runs": seed, "findings": sorted(set(findings))}


def garbage(server: Process, count: int) -> dict[str, int]:
    """Bytes that are hardly HTTP. Returns how often each first line of an answer occurred."""
    rng = random.Random(1)
    statuses: dict[str, int] = {}
    whole = (
        b"PUT /v1/keys/%s/parts?offset=0 HTTP/1.1\r\n" % (b"0" * 32)
        + HOST
        + b"Content-Length: 10\r\n\r\n0123456789"
    )
    for number in range(count):
        kind = number % 4
        if kind == 0:
            data = rng.randbytes(rng.randrange(1, 400))
        elif kind == 1:
            data = whole[: rng.randrange(1, len(whole))]
        elif kind == 2:
            changed = bytearray(whole)
            for _ in range(rng.randrange(1, 8)):
                changed[rng.randrange(len(changed))] = rng.randrange(256)
            data = bytes(changed)
        else:
            data = (
                b"GET / HTTP/1.1\r\n" + HOST + b"X: " + rng.randbytes(rng.randrange(1, 70_000)) + b"\r\n\r\n"
            )
        with contextlib.suppress(OSError), socket.create_connection(server.address, timeout=20) as connection:
            answer = b""
            with contextlib.suppress(OSError):
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                answer = connection.recv(1 << 16)
            status = answer.split(b" ", 2)[1].decode() if answer.startswith(b"HTTP/1.1 ") else "closed"
            statuses[status] = statuses.get(status, 0) + 1
    return statuses


@contextmanager
def connected(server: Process, count: int, data: Callable[[int], bytes]) -> Iterator[list[socket.socket]]:
    """This many connections, with some bytes sent on each."""
    connections: list[socket.socket] = []
    try:
        for number in range(count):
            connection = socket.create_connection(server.address, timeout=20)
            connection.sendall(data(number))
            connections.append(connection)
        yield connections
    finally:
        for connection in connections:
            connection.close()


def slow(server: Process, seconds: float) -> dict[str, int]:
    """Senders of a byte a second, half within a header and half within a body."""

    def begin(number: int) -> bytes:
        if number % 2:
            return b"GET /v1/model HTTP/1.1\r\n" + HOST + b"X-Slow: "
        return b"POST /v1/keys HTTP/1.1\r\n" + HOST + b"Content-Length: 4000\r\n\r\n"

    broken: set[int] = set()
    with connected(server, SLOW, begin) as connections:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for number, connection in enumerate(connections):
                with contextlib.suppress(OSError):
                    connection.send(b"x")
                    continue
                broken.add(number)
            time.sleep(1)
    return {"senders": SLOW, "broken_off": len(broken)}


def many(server: Process, seconds: float) -> dict[str, int]:
    """Connections that send nothing, and then all ask."""
    with connected(server, CONNECTIONS, lambda number: b"") as connections:
        time.sleep(seconds)
        answered = 0
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.sendall(b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n")
        for connection in connections:
            with contextlib.suppress(OSError):
                answered += connection.recv(1 << 12).startswith(b"HTTP/1.1 200 ")
    return {"connections": CONNECTIONS, "answered": answered}


def hour(server: Process, model: Model, count: int) -> list[dict[str, int]]:
    """As many calls as an hour has at ten a second: memory after every twelfth of them."""
    identifier, body = "0" * 32, json.dumps({"model": model.manifest.hash}).encode()
    calls = [
        ("GET", "/v1/model", None),
        ("GET", "/v1/models", None),
        ("GET", f"/v1/keys/{identifier}", None),
        ("POST", "/v1/keys", body),
        ("POST", "/v1/keys", b'{"model": 3}'),
        ("PUT", f"/v1/keys/{identifier}/parts?offset=0", b"x" * 10_000),
        ("POST", f"/v1/keys/{identifier}/jobs?model=x", b"y" * 1000),
        ("GET", "/v1/jobs/none/result", None),
        ("DELETE", "/v1/model", None),
        ("GET", "/metrics", None),
    ]

    def work(share: int) -> None:
        connection = http.client.HTTPConnection(*server.address, timeout=60)
        for number in range(share):
            method, path, data = calls[number % len(calls)]
            try:
                connection.request(method, path, data)
                connection.getresponse().read()
            except (http.client.HTTPException, OSError):
                connection.close()
        connection.close()

    samples = [server.memory()]
    for _ in range(12):
        threads = [threading.Thread(target=work, args=(count // 48,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        samples.append(server.memory())
    return samples


def main() -> None:
    """Measure, and write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schemathesis", default="schemathesis", help="its program")
    parser.add_argument("--requests", type=int, default=10_000, help="of schemathesis, at least")
    parser.add_argument("--hour", type=int, default=HOUR_OF_REQUESTS, help="calls of the part with memory")
    parser.add_argument("--seconds", type=float, default=40.0, help="of slow senders")
    parser.add_argument("--quiet", action="store_true", help="say that nothing else ran")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    command = [
        "python",
        "-m",
        "studies.service.malformed",
        *("PATH" if "/" in part else part for part in sys.argv[1:]),
    ]
    record: dict[str, Any] = {"command": " ".join(command), "quiet": options.quiet}
    record["machine"] = describe()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = make_model(folder / "model")
        server = Process(folder / "model", folder / "state", folder / "log")
        time.sleep(5)
        record["idle"] = server.memory()
        honest = Honest(server.url, model)
        parts: dict[str, Callable[[], object]] = {
            "schemathesis": lambda: schemathesis(options.schemathesis, server, options.requests),
            "garbage": lambda: garbage(server, 2000),
            "slow_senders": lambda: slow(server, options.seconds),
            "many_connections": lambda: many(server, 10),
            "hour": lambda: hour(server, model, options.hour),
        }
        for part, run in parts.items():
            first, start = len(honest.seconds), time.monotonic()
            record[part] = {
                "result": run(),
                "seconds": time.monotonic() - start,
                "honest": honest.part(first),
            }
            print(part, json.dumps(record[part]), file=sys.stderr)
        honest.close()
        record["honest"] = {**honest.part(0), "wrong": honest.wrong, "failed": honest.failed}
        time.sleep(3)
        record["statuses"], record["open_files"] = server.counted(), server.open_files()
        record["after"] = server.memory()
        record["exit_status"] = server.close()
        told = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
        record["errors_logged"] = [line["message"][-300:] for line in told if line["level"] == "error"]
    out = record_folder(options.out, "service")
    (out / "malformed.json").write_text(json.dumps(record, indent=1) + "\n")
    failures = sum(
        count for status, count in record["statuses"].items() if status.startswith("50") and status != "503"
    )
    print(json.dumps({"requests": sum(record["statuses"].values()), "of 500": failures}))
    if failures or honest.wrong or honest.failed or not honest.seconds:
        raise SystemExit("requests failed, or the honest client was not served")


if __name__ == "__main__":
    main()
