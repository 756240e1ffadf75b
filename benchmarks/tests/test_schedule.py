import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness.console import Console
from harness.programs.schedule import Measurement, Outcome, Schedule, rotated
from harness.programs.targets import Executable, Target, Unavailable
from harness.sets import Case

Line = Callable[..., str]

CASES = [Case("quick", 3, ("rotate",), first=True), Case("quick", 1, ("rotate",), first=False)]


def target(name: str, *, own_digits: bool = False) -> Target:
    def prepare(build: Path, console: Console) -> Executable:
        raise Unavailable("tests hand their programs over ready-made")

    return Target(name, prepare, own_digits)


def program(source: str) -> Executable:
    """Return a program that runs Python source; the arguments of the case follow it."""
    return Executable((sys.executable, "-c", source))


def printing(*lines: str) -> Executable:
    return program(f"print({chr(10).join(lines)!r})")


def run(programs: dict[Target, Executable], rounds: int = 1) -> tuple[Outcome, list[Measurement]]:
    outcome, kept = Outcome(), list[Measurement]()
    Schedule(5, 1, Console(), outcome, kept.append).run(programs, CASES, rounds)
    return outcome, kept


def test_every_round_starts_with_another_target() -> None:
    names = [target(name) for name in "abc"]
    assert [[t.name for t in rotated(names, turn)] for turn in range(3)] == [
        list("abc"),
        list("bca"),
        list("cab"),
    ]
    assert rotated([], 1) == []


def test_targets_are_interleaved_within_each_case(line: Line) -> None:
    outcome, kept = run({target(name): printing(line()) for name in "ab"}, rounds=2)
    assert [(m.target, m.round) for m in kept] == [(t, 0) for t in "abab"] + [(t, 1) for t in "baba"]
    assert outcome.measurements == kept


def test_a_library_with_digits_of_its_own_runs_one_case(line: Line) -> None:
    _, kept = run({target("a", own_digits=True): printing(line(alpha=None))})
    assert len(kept) == 1


def test_the_arguments_name_the_case(line: Line) -> None:
    echo = program(f"import sys; sys.exit(' '.join(sys.argv[1:])); print({line()!r})")
    outcome, _ = run({target("a"): echo})
    assert outcome.reasons["a"] == (
        "--sets sets.json --set quick --alpha 3 --runs 5 --threads 1 --work rotate"
    )


def test_a_failure_leaves_its_reason_and_the_others_run(line: Line) -> None:
    failing = program("import sys; print('warming up', file=sys.stderr); sys.exit('a: out of memory')")
    outcome, kept = run({target("a"): failing, target("b"): printing(line())})
    assert outcome.reasons == {"a": "out of memory"}
    assert [m.target for m in kept] == ["b", "b"]


def test_figures_before_a_failure_are_kept(line: Line) -> None:
    outcome, _ = run({target("a"): program(f"print({line()!r}); raise SystemExit('lost')")})
    assert [m.target for m in outcome.measurements] == ["a"]
    assert outcome.reasons == {"a": "lost"}


def test_a_line_that_is_no_record_stops_the_target() -> None:
    outcome, _ = run({target("a"): printing("hello")})
    assert outcome.reasons["a"].startswith("printed something else than a record: not JSON")


def test_a_missing_program_is_a_reason() -> None:
    outcome, _ = run({target("a"): Executable(("/nowhere/program",))})
    assert outcome.reasons == {"a": "/nowhere/program: No such file or directory"}


def test_unchecked_results_are_kept_in_the_raw_data_only(line: Line) -> None:
    outcome, kept = run({target("a"): printing(line(checked=False))})
    assert outcome.measurements == []
    assert len(kept) == 2
    assert len(outcome.refused) == 2


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT raises `KeyboardInterrupt`: a shell's background jobs inherit that it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_keeps_what_is_there(line: Line) -> None:
    interrupt = program(
        f"import os, signal, time; print({line()!r}, flush=True);"
        f"time.sleep(0.5); os.kill(os.getppid(), signal.SIGINT); time.sleep(60)"
    )
    outcome, kept = run({target("a"): interrupt, target("b"): printing(line())})
    assert outcome.interrupted
    assert [m.target for m in kept] == ["a"]


@pytest.mark.parametrize("threads", [1, 2])
def test_the_usual_thread_counts_are_set(threads: int) -> None:
    source = "import os, sys; sys.exit(os.environ['OMP_NUM_THREADS'] + os.environ['RAYON_NUM_THREADS'])"
    outcome = Outcome()
    Schedule(1, threads, Console(), outcome, lambda _: None).run({target("a"): program(source)}, CASES[:1], 1)
    assert outcome.reasons["a"] == f"{threads}{threads}"
