"""Attacks a server by one client after the other, and measures what an honest client sees of it.

    cd benchmarks && python -m studies.service.hostile [NAME[+NAME] ...] [--seconds 600] [--json] [--out DIR]

Attacks joined by ``+`` go on at the same time, each by a process of its own and from an address of its own.

The server is a process of ``keywright serve`` with digits in a small ring without security, so that little
but the service is measured. For each attack (`attacks`) a new server starts. An honest client sends
evaluations, and now and then begins anew: it makes keys, uploads them, and has them deleted. Quiet and
attacked turns alternate, because the machine may have other work: a quiet turn, then an attacked one that is
twice as long, until the attack had its seconds. The client decrypts every answer and compares it with the
program in the clear. An attack passes if the client got all its answers, and the medians of its evaluations
and its uploads are within twice those of its quiet turns, and so are the 95th percentiles of what it did
often enough.

The attackers connect from other addresses of the loopback, and take idle processors alone, because an
attacker does not run on the server's processors. The server's state is in memory where there is
``/dev/shm``: other work on a disk would be measured with it.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import ipaddress
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest import mock

import keywright as kw
import numpy as np
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from harness.folders import record_folder
from harness.measurement.machine import describe
from keywright._units import format_bytes
from keywright.client import RemoteModel
from keywright.model import Model
from keywright.model.served import framing
from keywright.runtime import run_clear
from keywright.serve.tenants.accounts import add

from studies.service.attacks import ATTACKS, Target, named, run
from studies.service.malformed import Process, make_model

TOLERANCE = 1e-3
TURN_S = 20.0
"""Seconds of an attacked turn; a quiet one has half of them."""

WARM_S = 3.0
"""Seconds at the beginning of a turn that do not count: the attack gathers, or its connections end."""

PAUSE_S = 0.1
"""Pause of the honest client between evaluations."""

NEW_KEYS_EVERY = 8
"""Evaluations after which the client begins anew."""

MEMORY = Path("/dev/shm")
"""Where files are in memory."""

MEMORY_EVERY_S = 2.0
"""How often the server's memory is read."""

WITHIN = 2.0
"""Most by which an attack may lengthen the honest client's requests."""

OFTEN = 100
"""Quiet requests of a kind from which its 95th percentile is judged: that of twenty is the slowest one."""

SLOW_S = 4.5
"""Seconds that the issuer takes for a document."""

EVALUATE = ("messages", "evaluations", "heavy", "jobs", "waiting", "results", "checks", "deletions")
"""Attacks by a client with keys."""

ATTACKERS = tuple(f"127.0.0.{66 + number}" for number in range(len(ATTACKS)))
KINDS = ("evaluation", "upload")


@dataclass
class Measured:
    """Seconds of the honest client's requests of a kind in each turn, by whether it was attacked."""

    quiet: list[list[float]] = field(default_factory=list)
    attacked: list[list[float]] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """Return counts, medians, 95th percentiles, their ratios, and the median of each turn."""
        summary: dict[str, Any] = {}
        for name, turns in (("quiet", self.quiet), ("attacked", self.attacked)):
            seconds = [each for turn in turns for each in turn]
            summary[f"{name}_count"] = len(seconds)
            summary[f"{name}_turns_s"] = [round(float(np.median(turn)), 4) for turn in turns if turn]
            for what, share in (("median", 0.5), ("p95", 0.95)):
                summary[f"{name}_{what}_s"] = float(np.quantile(seconds, share)) if seconds else float("nan")
        for what in ("median", "p95"):
            summary[f"{what}_ratio"] = summary[f"attacked_{what}_s"] / summary[f"quiet_{what}_s"]
        return summary


class HonestClient:
    """A client that evaluates, and now and then begins anew, while others attack.

    Args:
        url: of the server.
        model: that it serves.
        key: of its account.
    """

    def __init__(self, url: str, model: Model, key: str | None = None) -> None:
        self._remote = RemoteModel(url, insecure=True, key=key)
        # While nobody has keys on a server its workers end, and their start would be measured.
        self._standing = self._remote.session()
        self._standing.upload_keys()
        self._program, self._shape = model.program, model.manifest.input.places.shape
        self._random = np.random.default_rng(0)
        self.measured = {kind: Measured() for kind in KINDS}
        self.faults: list[str] = []

    def turn(self, seconds: float, warm: float, *, attacked: bool) -> None:
        """Send requests for some seconds. The first ones do not count."""
        begun = time.monotonic()
        for measured in self.measured.values():
            (measured.attacked if attacked else measured.quiet).append([])
        number = 0
        session = self._remote.session()
        try:
            while (now := time.monotonic()) < begun + seconds:
                counts = now > begun + warm
                try:
                    if number % NEW_KEYS_EVERY == 0:
                        session.close()
                        session = self._remote.session()
                        self._time("upload", session.upload_keys, attacked, counts)
                    self._evaluate(session, attacked, counts)
                except kw.KeywrightError as error:
                    self.faults.append(f"{type(error).__name__}: {error}")
                number += 1
                time.sleep(PAUSE_S)
        finally:
            session.close()

    def close(self) -> None:
        """Delete the keys."""
        self._standing.close()

    def _evaluate(self, session: Any, attacked: bool, counts: bool) -> None:
        sample = self._random.uniform(0, 1, self._shape)
        answer = self._time("evaluation", lambda: session.infer(sample), attacked, counts)
        if np.abs(answer - run_clear(self._program, sample)).max() > TOLERANCE:
            self.faults.append("a wrong answer")

    def _time(self, kind: str, work: Callable[[], Any], attacked: bool, counts: bool) -> Any:
        start = time.monotonic()
        answer = work()
        if counts:
            measured = self.measured[kind]
            (measured.attacked if attacked else measured.quiet)[-1].append(time.monotonic() - start)
        return answer


@contextmanager
def slow_issuer() -> Iterator[str]:
    """An issuer of tokens that takes its time. Yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            time.sleep(SLOW_S)
            keys: dict[str, object] = {"keys": []}
            entry = keys if self.path == "/keys" else {"issuer": url, "jwks_uri": f"{url}/keys"}
            data = json.dumps(entry).encode()
            with contextlib.suppress(OSError):
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield url
        server.shutdown()
        thread.join()


def certify(folder: Path) -> tuple[Path, Path]:
    """Make a certificate of the loopback and its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), dt.datetime.now(dt.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hostile")])
    loopback = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(loopback, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    paths[1].write_bytes(key.private_bytes(pem, form, serialization.NoEncryption()))
    return paths


class Attacker:
    """A process that attacks when it is told to. It is started before: its start takes the processors' time.

    Args:
        name: of the attack.
        target: the server.
    """

    def __init__(self, name: str, target: Target) -> None:
        context = multiprocessing.get_context("spawn")
        self.name, self._begun = name, context.Value("q", 0)
        ready, self._go = context.Event(), context.Event()
        self._process = context.Process(
            target=run, args=(name, target, self._begun, ready, self._go), daemon=True
        )
        self._process.start()
        ready.wait()

    def begin(self) -> None:
        """Attack."""
        self._go.set()

    def end(self) -> int:
        """End the process. Returns the number of connections that it began."""
        if not self._process.is_alive():
            raise SystemExit(f"the attack {self.name} ended with {self._process.exitcode}")
        self._process.terminate()
        self._process.join()
        return int(self._begun.value)


def heavy_model(folder: Path) -> Model:
    """The same digits in a ring of eight times the degree, in which an evaluation takes ten times as long."""
    return make_model(folder, log_n=14)


def target(address: Target, model: Model, has_keys: bool) -> Target:
    """Return what an attacker has on the server at an address: its own keys of a model and a message, if it
    ``has_keys``."""
    address = replace(address, model=model.manifest.hash)
    if not has_keys:
        return address
    client, sample = model.client(insecure=True), np.full(model.manifest.input.places.shape, 0.5)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "keys.kw"
        client.save_evaluation_keys(path)
        keys = path.read_bytes()
    message = framing.join(client.encrypt_batch(sample[None]))
    return replace(address, keys=address.send_set(keys), message=message, data=keys)


@contextmanager
def processor_time(server: Process, seconds: Counter[str]) -> Iterator[None]:
    """Add the seconds of the context, and those of `Process.processor` within it."""
    begun, before = time.monotonic(), server.processor()
    yield
    ran, waited = (end - start for end, start in zip(server.processor(), before, strict=True))
    seconds.update({"all": time.monotonic() - begun, "ran": ran, "waited": waited})


@contextmanager
def peak_memory(server: Process) -> Iterator[list[int]]:
    """Read the memory of all processes of a server now and then. Yields what was read."""
    read, ended = [server.memory()["all_pss"]], threading.Event()

    def watch() -> None:
        while not ended.wait(MEMORY_EVERY_S):
            read.append(server.memory()["all_pss"])

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield read
    finally:
        ended.set()
        thread.join()


def measure(
    names: Sequence[str], model: Model, folder: Path, seconds: float, turn: float, workers: int | None = None
) -> dict[str, Any]:
    """Attack a new server for some seconds in all, by several attacks at a time. Returns the result. By
    default the server has one worker, and two if evaluations are heavy."""
    with contextlib.ExitStack() as stack:
        more: list[str] = []
        key: str | None = None
        if "issuer" in names:
            key = add(folder / "accounts.json", "honest")
            url = stack.enter_context(slow_issuer())
            more += ["--accounts", str(folder / "accounts.json")]
            more += ["--oidc-issuer", url, "--oidc-audience", "keywright"]
        if not {"handshakes", "records"}.isdisjoint(names):
            certificate, private = certify(folder)
            more += ["--certificate", str(certificate), "--certificate-key", str(private)]
            stack.enter_context(mock.patch.dict(os.environ, SSL_CERT_FILE=str(certificate)))
        assert model.folder is not None
        models = {"heavy": heavy_model(folder / "heavy")} if "heavy" in names else {}
        # With one, an evaluation may wait for the end of one that takes several times as long.
        more += ["--workers", str(workers or (2 if models else 1))]
        also = [each.folder for each in models.values() if each.folder is not None]
        server = Process(model.folder, folder / "state", folder / "log", *more, also=also)
        stack.callback(server.close)
        targets = {
            name: target(
                Target(*server.address, "", source=source), models.get(name, model), name in EVALUATE
            )
            for name, source in zip(names, ATTACKERS, strict=False)
        }
        honest = HonestClient(server.url, model, key)
        stack.callback(honest.close)
        honest.turn(WARM_S, WARM_S, attacked=False)
        begun, warm = dict.fromkeys(names, 0), min(WARM_S, turn / 4)
        peak = stack.enter_context(peak_memory(server))
        processor = {"quiet": Counter[str](), "attacked": Counter[str]()}
        for _ in range(max(1, round(seconds / turn))):
            attackers = [Attacker(*each) for each in targets.items()]
            with processor_time(server, processor["quiet"]):
                honest.turn(turn / 2, warm, attacked=False)
            for attacker in attackers:
                attacker.begin()
            with processor_time(server, processor["attacked"]):
                honest.turn(turn, warm, attacked=True)
            for attacker in attackers:
                begun[attacker.name] += attacker.end()
        attack = "+".join(names)
        report: dict[str, Any] = {"attack": attack, "seconds": seconds, "begun": begun}
        report |= {kind: measured.summary() for kind, measured in honest.measured.items()}
    report |= {"peak_bytes": max(peak), "load": os.getloadavg()[1], "processor": processor}
    report["state_bytes"] = sum(file.stat().st_size for file in (folder / "state").rglob("*"))
    report["log_bytes"] = (folder / "log").stat().st_size
    report["faults"] = honest.faults
    report["within"] = all(begun.values()) and passes(report, honest.faults)
    return report


def passes(report: dict[str, Any], faults: list[str]) -> bool:
    """Whether the honest client was served without faults, in twice its quiet time at most."""
    within = not faults
    for kind in KINDS:
        judged = ("median", "p95") if report[kind]["quiet_count"] >= OFTEN else ("median",)
        within &= all(report[kind][f"{what}_ratio"] <= WITHIN for what in judged)
    return within


def line(report: dict[str, Any]) -> str:
    """Return the result of an attack for people."""

    def change(kind: str, what: str) -> str:
        before, after = (1e3 * report[kind][f"{when}_{what}_s"] for when in ("quiet", "attacked"))
        return f"{what} {before:.0f} -> {after:.0f} ms"

    kinds = (f"{kind} {change(kind, 'median')}, {change(kind, 'p95')}" for kind in KINDS)
    verdict, begun = "within" if report["within"] else "NOT WITHIN", sum(report["begun"].values())
    faults = f"; {len(report['faults'])} faults, the first: {report['faults'][0]}" if report["faults"] else ""
    return f"{report['attack']}: {'; '.join(kinds)}: {verdict} {WITHIN:g}x ({begun} attempts){faults}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def table(record: dict[str, Any]) -> str:
    """Return the record's page."""
    loads = [each["load"] for each in record["results"]]
    words = (
        f"`{record['command']}` on {'; '.join(record['machine'])}. The machine had other work: a load of "
        f"{min(loads):.0f} to {max(loads):.0f}. Attackers ran while processors were idle. "
        "Times are the medians of all requests in attacked turns and in the quiet ones between them, in "
        "brackets the least and the greatest median of a turn. Ratios are those of the medians, in brackets "
        "those of the 95th percentiles. The processor columns are shares of the attacked turns: the thread "
        "that reads requests ran, and it waited for a processor that other work had. Memory is the most that "
        "all processes of the server had; log and state are the bytes at the end."
    )
    kinds = [f"{kind}, {what}" for kind in KINDS for what in ("quiet", "attacked", "ratio")]
    columns = ["attacks at the same time", "attacked, s", "attempts", *kinds]
    columns += ["processor, ran", "waited", "memory", "log", "state", "faults"]
    rule = ["---"] + ["---:"] * (len(columns) - 1)
    head = ["# An honest client beside attackers", "", words, "", *map(_row, (columns, rule))]

    def times(kind: dict[str, Any], when: str) -> str:
        low, high = (1e3 * end(kind[f"{when}_turns_s"], default=0.0) for end in (min, max))
        return f"{1e3 * kind[f'{when}_median_s']:.0f} ms ({low:.0f} to {high:.0f})"

    rows = []
    for each in record["results"]:
        cells = [each["attack"].replace("+", ", "), f"{each['seconds']:.0f}"]
        cells.append(f"{sum(each['begun'].values()):,}")
        for kind in map(each.get, KINDS):
            ratios = f"{kind['median_ratio']:.2f} ({kind['p95_ratio']:.2f})"
            cells += [times(kind, "quiet"), times(kind, "attacked"), ratios]
        seconds = each["processor"]["attacked"]
        cells += [f"{seconds[what] / seconds['all']:.0%}" for what in ("ran", "waited")]
        cells += [format_bytes(each[f"{what}_bytes"]) for what in ("peak", "log", "state")]
        rows.append(_row([*cells, f"{len(each['faults'])}"]))
    named = [f"* `{name}`: {text}" for name, text in record["attacks"].items()]
    return "\n".join([*head, *rows, "", *named, ""])


def write(out: Path, machine: Sequence[str], results: Sequence[dict[str, Any]]) -> None:
    """Write the record into a folder."""
    command = ["PATH" if "/" in part else part for part in sys.argv[1:]]
    record = {
        "command": " ".join(["python", "-m", "studies.service.hostile", *command]),
        "machine": machine,
        "attacks": dict(named()),
        "results": results,
    }
    (out / "hostile.json").write_text(json.dumps(record, indent=1) + "\n")
    (out / "README.md").write_text(table(record))


def main() -> None:
    """Measure, and write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"attacks, joined by + if they go on together: {', '.join(ATTACKS)}; default each alone",
    )
    parser.add_argument("--seconds", type=float, default=600.0, help="of each attack")
    parser.add_argument("--turn", type=float, default=TURN_S, help="seconds of an attacked turn")
    parser.add_argument("--workers", type=int, help="of the server (default: 1, and 2 beside heavy)")
    parser.add_argument("--json", action="store_true", help="print a JSON object for each attack")
    parser.add_argument("--out", type=Path, help="folder of the record; none is written by default")
    options = parser.parse_args()
    groups = [group.split("+") for group in options.names or ATTACKS]
    if strange := {name for group in groups for name in group} - set(ATTACKS):
        parser.error(f"there is no attack {', '.join(sorted(strange))}; choose from {', '.join(ATTACKS)}")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    machine, results = describe(), []
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        model = make_model(Path(folder) / "model")
        for group in groups:
            place = Path(folder) / "+".join(group)
            place.mkdir()
            measurement = measure(
                group, model, place, options.seconds, min(options.turn, options.seconds), options.workers
            )
            results.append(measurement)
            print(json.dumps(measurement) if options.json else line(measurement), flush=True)
            if options.out is not None:
                # After each attack: all together take hours.
                write(record_folder(options.out), machine, results)
    if not all(measurement["within"] for measurement in results):
        raise SystemExit("an honest client was not served within twice its quiet latency")


if __name__ == "__main__":
    main()
