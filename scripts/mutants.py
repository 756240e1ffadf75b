"""Plant faults in the Python package, one at a time, and require that a test finds each.

    python scripts/mutants.py [PART]

A fault is a text of a file and its replacement, with the tests that must fail. Each is planted in a copy of
the package; the tests run against the copy in a separate process. The script first checks that the listed
tests pass without a fault. With PART, only faults are planted whose file or tests have it in their name. The
exit status is 1 if a fault is not found.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "keywright"
TESTS = "python/tests"


@dataclass(frozen=True)
class Fault:
    """A fault to plant.

    Attributes:
        file: in the package.
        text: occurs once in the file.
        fault: its replacement.
        tests: a file of tests, and words that pytest selects by.
    """

    file: str
    text: str
    fault: str
    tests: tuple[str, str]


FAULTS = (
    Fault(
        "plan/exact/optimizer.py",
        "candidates.shapes(used, None if every_level else own)",
        "candidates.shapes(used, own)",
        ("plan/optimum/test_exact.py", "only_serves_as_a_part"),
    ),
    Fault(
        "plan/search/planner.py",
        "if plan.max_hops <= max_hops and self.quiet(plan)]",
        "if self.quiet(plan)]",
        ("plan/test_plans.py", "more_hops_than_it_may"),
    ),
    Fault(
        "plan/cost/error_budget.py",
        "return max(0.0, min([ENCRYPTION_BITS, *shares]))",
        "return max(0.0, min([ENCRYPTION_BITS, *shares])) / 2",
        ("plan/optimum/test_search.py", "error_budget_is"),
    ),
    Fault(
        "serve/evaluation/evaluations.py",
        "        for job in self._jobs.of(identifier):\n            self._drop(job)",
        "        for job in self._jobs.of(identifier):\n            pass",
        ("serve/test_service.py", "deleted_keys_leave_no_data"),
    ),
    Fault(
        "serve/jobs/queue.py",
        "if job.owner == owner]",
        "]",
        ("serve/test_service.py", "deleted_keys_leave_no_data"),
    ),
    Fault(
        "serve/workers/workers.py",
        "self.keys.forget(keys)",
        "pass",
        ("serve/test_service.py", "deleted_keys_leave_no_data"),
    ),
    Fault(
        "serve/uploads/upload_store.py",
        "limit = time.monotonic() - self.admission.expiry",
        "limit = time.time() - self.admission.expiry",
        ("serve/storage/test_key_sets.py", "step_of_the_clock"),
    ),
    Fault(
        "serve/jobs/queue.py",
        "                self._drop([_message(job)])\n        with contextlib.suppress(OSError):",
        "                pass\n        with contextlib.suppress(OSError):",
        ("serve/evaluation/test_jobs.py", "survive_the_process or fetched_or_expire or only_the_jobs"),
    ),
    Fault(
        "serve/uploads/upload_store.py",
        "if uploaded is None or uploaded.tenant != tenant:",
        "if uploaded is None:",
        ("serve/tenants/test_tenants.py", "every_identifier or retired_configuration"),
    ),
    Fault(
        "serve/tenants/quotas.py",
        "if most is None or stored + more + own <= most:",
        "if most is None or more <= most:",
        ("serve/tenants/test_quotas.py", "bytes_of_a_tenant"),
    ),
    Fault(
        "client/key_owner.py",
        "                except UnknownKeysError:\n                    self._lose_keys",
        "                except LimitError:\n                    self._lose_keys",
        ("serve/clients/test_lost_keys.py", "lost_keys_are_sent_again"),
    ),
    Fault(
        "federated/strategy.py",
        "if node not in self._asked or node in accepted:",
        "if node not in self._asked:",
        ("federated/test_flower.py", "second_reply"),
    ),
    Fault(
        "_reading/arrays.py",
        "if number > max_numbers or ",
        "if ",
        ("commands/test_reading.py", "headers_are_refused or arrays_are_bounded"),
    ),
)


def run_tests(tests: tuple[str, str], package: Path) -> bool:
    """Whether tests pass with a package.

    Args:
        tests: as of `Fault`.
        package: the folder that holds it.

    Raises:
        RuntimeError: the tests could not be run.
    """
    file, words = tests
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", f"{TESTS}/{file}", "-k", words]
    path = os.pathsep.join((str(package), str(PACKAGE.parent)))
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(command)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == 0


def plant(fault: Fault, folder: Path) -> None:
    """Copy the package into a folder, with a fault.

    Raises:
        ValueError: its text is not in its file once.
    """
    source = (PACKAGE / fault.file).read_text(encoding="utf-8")
    if source.count(fault.text) != 1:
        raise ValueError(f"{fault.file} has {fault.text!r} {source.count(fault.text)} times, not once")
    shutil.copytree(PACKAGE, folder / "keywright", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "keywright" / fault.file).write_text(source.replace(fault.text, fault.fault), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Plant every fault."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", nargs="?", default="")
    part = parser.parse_args(arguments).part
    chosen = [fault for fault in FAULTS if part in fault.file or part in fault.tests[0]]
    unseen = 0
    for tests in sorted({fault.tests for fault in chosen}):
        if not run_tests(tests, PACKAGE.parent):
            print(f"{tests[0]}, {tests[1]}: fails without a fault")
            return 1
    for fault in chosen:
        with tempfile.TemporaryDirectory(prefix="keywright.") as folder:
            plant(fault, Path(folder))
            seen = not run_tests(fault.tests, Path(folder))
        unseen += not seen
        print(f"{'seen' if seen else 'NOT SEEN'}: {fault.file}: {fault.fault}", flush=True)
    print(f"{len(chosen) - unseen} of {len(chosen)} faults are seen")
    return int(unseen > 0)


if __name__ == "__main__":
    sys.exit(main())
