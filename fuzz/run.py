"""Fuzzes every reader: the byte formats in Rust, under libFuzzer, then the package's, under atheris.

    python fuzz/run.py [--program PATH] [--seconds S] [--only NAME ...] [--rounds R] [--out FILE] [--keep]

Every target gets the same share of the seconds. It begins from its archive in `fuzz/corpus`, and one in Rust
from `vectors/wire`; inputs that reach new code stay in `target/fuzz/inputs`. What fails is stored in
`fuzz/crashes`, where tests find it, and the exit status is 1. `--program` is the instrumented
`keywright-fuzz`, which `make fuzz` builds; without it only the package is fuzzed. In rounds, every target
has its turn several times.
`--out` writes a record after each round, or adds to the one that is there; `--keep` puts the fewest of the
inputs that reach what all reach into the archive.
"""

import argparse
import importlib.util
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / "fuzz" / "python"
sys.path.insert(0, str(PYTHON))

import corpus  # noqa: E402

CRASHES = ROOT / "fuzz" / "crashes"
CORPUS, INPUTS = (ROOT / "target" / "fuzz" / kind for kind in ("corpus", "inputs"))
GOLDEN = ROOT / "vectors" / "wire" / "v2"
PER_INPUT = 10
"""Processor seconds within which an input must be read."""
STOPPED = 12
"""The same by the clock is this many times as long, because the machine has other work. Slower inputs are
read again alone."""
MEMORY_MIB = 4096
STATUS = re.compile(rb"^#(\d+)\s+(INITED|DONE)\s+cov: (\d+)", re.MULTILINE)
GRACE = 600
"""Seconds that a process may take in addition to its fuzzing time."""
LATE = 124
"""Status of a process that took longer."""
LARGEST_KEPT = 1 << 14
"""Bytes of the largest input that is kept."""
KEPT_BYTES = 40 << 10
"""Bytes of all inputs of a target that are kept besides the seeds."""


@dataclass
class Outcome:
    """Results of a target.

    Attributes:
        language: of the reader.
        seconds: by the clock.
        processor_seconds: of the processor.
        inputs: number of inputs tried.
        edges_before: edges of the control flow that the initial inputs reach.
        edges_after: edges that all inputs reach.
        failures: files of `fuzz/crashes`.
    """

    language: str
    seconds: float = 0.0
    processor_seconds: float = 0.0
    inputs: int = 0
    edges_before: int = 0
    edges_after: int = 0
    failures: list[str] = field(default_factory=list)


def processor_seconds() -> float:
    """Return the processor seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass(frozen=True)
class Target:
    """A reader, and the command that fuzzes it."""

    name: str
    command: tuple[str, ...]
    language: str

    @property
    def starts(self) -> list[Path]:
        """Folders of inputs to start from."""
        folders = [CORPUS / self.name, CRASHES / self.name]
        if self.language == "Rust" and self.name != "pool_file":
            folders.append(GOLDEN)
        return [folder for folder in folders if folder.is_dir()]

    def unpack(self) -> None:
        """Write the inputs of the archive as files, which libFuzzer reads."""
        folder = CORPUS / self.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, data in corpus.read(self.name).items():
            (folder / name).write_bytes(data)

    def call(
        self, options: list[str], folders: list[Path], limit: float
    ) -> subprocess.CompletedProcess[bytes]:
        """Run libFuzzer with its own temporary files, in memory if the system has such a folder."""
        memory = Path("/dev/shm")
        with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as temporary:
            environment = os.environ | {"TMPDIR": temporary, "KEYWRIGHT_FUZZ_TARGET": self.name}
            command = [*self.command, *options, *map(str, folders)]
            try:
                return subprocess.run(
                    command, env=environment, cwd=temporary, capture_output=True, timeout=limit, check=False
                )
            except subprocess.TimeoutExpired as late:
                errors = (late.stderr or b"") + f"\nstopped after {limit:.0f} s".encode()
                return subprocess.CompletedProcess(command, LATE, b"", errors)

    def fuzz(self, seconds: float, outcome: Outcome) -> None:
        """Try inputs for ``seconds`` seconds, and add up the results."""
        inputs, crashes = INPUTS / self.name, CRASHES / self.name
        inputs.mkdir(parents=True, exist_ok=True)
        crashes.mkdir(parents=True, exist_ok=True)
        self.unpack()
        before = set(crashes.iterdir())
        options = [
            f"-max_total_time={max(round(seconds), 1)}",
            f"-timeout={PER_INPUT * STOPPED}",
            f"-report_slow_units={PER_INPUT * STOPPED}",
            f"-rss_limit_mb={MEMORY_MIB}",
            f"-artifact_prefix={crashes}/",
        ]
        start, before_it = time.monotonic(), processor_seconds()
        done = self.call(options, [inputs, *self.starts], seconds + GRACE)
        outcome.seconds += time.monotonic() - start
        outcome.processor_seconds += processor_seconds() - before_it
        counters = {kind: (int(count), int(edges)) for count, kind, edges in STATUS.findall(done.stderr)}
        if b"INITED" in counters:
            outcome.edges_before = outcome.edges_before or counters[b"INITED"][1]
            outcome.edges_after = max(outcome.edges_after, counters[b"INITED"][1])
        if b"DONE" in counters:
            outcome.inputs += counters[b"DONE"][0]
            outcome.edges_after = max(outcome.edges_after, counters[b"DONE"][1])
        new = sorted(set(crashes.iterdir()) - before)
        slow = [path for path in new if path.name.startswith("timeout-") and not self.takes_long(path)]
        for path in slow:
            path.unlink()
        if done.returncode != 0 and (not new or len(slow) < len(new)):
            found_now = [str(path.relative_to(ROOT)) for path in new if path not in slow]
            outcome.failures += found_now or [f"status {done.returncode}"]
            lines = (done.stdout + done.stderr).decode(errors="replace").splitlines()
            print(*(line for line in lines if not line.startswith("#")), sep="\n")
        if not any(crashes.iterdir()):
            crashes.rmdir()

    def takes_long(self, path: Path) -> bool:
        """Whether an input takes more than `PER_INPUT` of the processor."""
        options = [f"-timeout={PER_INPUT * STOPPED}", "-runs=1", f"-artifact_prefix={os.devnull}"]
        before = processor_seconds()
        self.call(options, [path], PER_INPUT * STOPPED + GRACE)
        return processor_seconds() - before > PER_INPUT

    def keep(self) -> None:
        """Add the fewest inputs that together reach all edges to the archive, the small ones first."""
        with tempfile.TemporaryDirectory() as least:
            self.call(
                ["-merge=1", "-use_counters=0", f"-timeout={PER_INPUT * STOPPED}"],
                [Path(least), *self.starts, INPUTS / self.name],
                600,
            )
            known = {path.read_bytes() for start in self.starts for path in start.iterdir() if path.is_file()}
            left = KEPT_BYTES - sum(
                len(data) for name, data in corpus.read(self.name).items() if not name.startswith(corpus.SEED)
            )
            new = {}
            for path in sorted(Path(least).iterdir(), key=lambda path: (path.stat().st_size, path.name)):
                size = path.stat().st_size
                if size <= LARGEST_KEPT and size <= left and path.read_bytes() not in known:
                    new[path.name] = path.read_bytes()
                    left -= size
        if new:
            corpus.add(self.name, new)


def targets(program: Path | None) -> list[Target]:
    """Return all targets that can run here; prints the others."""
    targets = []
    if program is None:
        print("SKIPPED the byte formats: no instrumented program was given")
    else:
        listed = subprocess.run(
            [program.resolve()], env={"KEYWRIGHT_FUZZ_TARGET": "list"}, capture_output=True, check=True
        )
        names = listed.stdout.decode().split()
        targets += [Target(name, (str(program.resolve()),), "Rust") for name in names]
    if importlib.util.find_spec("atheris") is None:
        print(
            "SKIPPED the readers of the package: atheris is not installed, it has no wheel for this machine"
        )
    else:
        from readers import READERS

        script = str(PYTHON / "fuzz_reader.py")
        targets += [Target(name, (sys.executable, script, name), "Python") for name in READERS]
    return targets


def main() -> int:
    """Run and report; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    chosen = [
        target for target in targets(options.program) if not options.only or target.name in options.only
    ]
    outcomes = read_record(options.out)
    for target in chosen:
        outcomes.setdefault(target.name, Outcome(target.language))
    for _ in range(options.rounds):
        for target in chosen:
            target.fuzz(options.seconds / options.rounds / len(chosen), outcomes[target.name])
        if options.out is not None:
            write_record(options.out, outcomes)
    for name, outcome in outcomes.items():
        print(
            f"{name}: {outcome.inputs} inputs in {outcome.seconds:.0f} s, "
            f"{outcome.edges_before} edges before, {outcome.edges_after} after, "
            f"{len(outcome.failures)} failures"
        )
    if options.keep:
        for target in chosen:
            target.keep()
    failures = [failure for outcome in outcomes.values() for failure in outcome.failures]
    print("no failure" if not failures else "failures: " + " ".join(failures))
    return int(bool(failures))


def read_record(path: Path | None) -> dict[str, Outcome]:
    """Read the record of an earlier run."""
    if path is None or not path.is_file():
        return {}
    return {name: Outcome(**entry) for name, entry in json.loads(path.read_text())["targets"].items()}


def write_record(path: Path, outcomes: dict[str, Outcome]) -> None:
    """Write the results so far as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    entry = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "seconds": round(sum(outcome.seconds for outcome in outcomes.values())),
        "processor_seconds": round(sum(outcome.processor_seconds for outcome in outcomes.values())),
        "inputs": sum(outcome.inputs for outcome in outcomes.values()),
        "failures": sum(len(outcome.failures) for outcome in outcomes.values()),
        "targets": {
            name: asdict(outcome)
            | {"seconds": round(outcome.seconds), "processor_seconds": round(outcome.processor_seconds)}
            for name, outcome in outcomes.items()
        },
    }
    path.write_text(json.dumps(entry, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
