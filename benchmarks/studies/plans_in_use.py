"""Plans in use: predicted and measured times of a network and of a bootstrap, and the cost of streamed keys.

    cd benchmarks && python -m studies.plans_in_use [--model NETWORK.onnx] [--preset NAME] [--plans kds]
        [--share 0.5] [--turns 5] [--derived]

Times are processor times of one thread; for streaming they are wall times. Predictions use this machine's
calibration (keywright calibrate) if there is one, and cover key switches alone, while measured times cover
everything. So the table has the difference of each plan from the first one, predicted and measured. The
other work is the same under every plan, except for divisions that linear transforms save. Every result is
decrypted and compared with its bound. Each run has a separate process, for its peak memory. Three processes
take turns. One has the keys of the plan kds in memory, one streams them from a file that the system has in
its cache, and one streams them from the disk: the file is dropped from the cache before every run. The
table has the median, the smallest and the largest value of all turns. With --derived the keys of that plan
are derived from master keys. The table then has bytes and seconds beside the plan's, a run with the derived
keys, and a run that derives them again within the share of their bytes.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import keywright as kw
import numpy as np
from keywright import plan as planning
from keywright.plan.cost.calibration import Calibration
from keywright.plan.keys import plan_file
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.search.frontier import descend, fastest_state
from keywright.plan.workload.network import convert, convert_bootstrap
from keywright.runtime import run_clear
from keywright.runtime.encrypted.backend import EncryptedBackend

RUNS = 3
PLANS = ["kds", "half", "quarter", "fewest"]
SHARES = {"half": 0.5, "quarter": 0.25, "fewest": 0.0}


class Times:
    """Processor and wall time of several runs."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self.processor: list[float] = []
        self.wall: list[float] = []
        self.error = self.bound = 0.0

    @contextmanager
    def run(self) -> Iterator[None]:
        """Time the enclosed code. A file that is read from the disk is dropped from the cache before."""
        if self.file is not None:
            with self.file.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        processor, wall = process_time(), perf_counter()
        yield
        self.processor.append(process_time() - processor)
        self.wall.append(perf_counter() - wall)

    @property
    def medians(self) -> tuple[float, float]:
        """The medians of both times."""
        return float(np.median(self.processor)), float(np.median(self.wall))


def plans(
    workload: planning.Workload, model: planning.CostModel, names: list[str]
) -> dict[str, planning.KeyPlan]:
    """The named plans among these: the fastest keys for every use, a half and a quarter of their bytes, and
    the fewest bytes.
    """
    out = {"kds": planning.STRATEGIES["kds"].plan(workload, model)}
    if set(names) <= set(out):
        return out
    state = fastest_state(workload, model, max_hops=2)
    points = sorted(descend(state), key=lambda point: point.seconds)
    for name, share in SHARES.items():
        most = share * out["kds"].stored_bytes
        fitting = [point for point in points if point.stored_bytes <= most]
        smallest = min(points, key=lambda point: point.stored_bytes)
        out[name] = state.plan(name, fitting[0] if fitting else smallest)
    return {name: plan for name, plan in out.items() if name in names}


class Network:
    """A network, and the owner of its keys."""

    def __init__(self, model: Path | None) -> None:
        data = files("keywright") / "data"
        self.compiled = kw.compile(model or (data / "digits.onnx").read_bytes(), batch=1)
        self.parameters, self.program = self.compiled.parameters, self.compiled.program
        self.bootstraps = list(self.compiled.bootstraps)
        shape = self.program.input.shape
        self.sample = np.random.default_rng(1).uniform(0, 1, shape)

    def planned(self, model: planning.CostModel, names: list[str]) -> dict[str, planning.KeyPlan]:
        return plans(convert(self.program, self.parameters, "network", self.bootstraps), model, names)

    def execution(self, plan: planning.KeyPlan) -> PlanExecution:
        return PlanExecution(plan, self.parameters, self.program, self.bootstraps)

    def run(
        self, execution: PlanExecution, keys: kw.EvaluationKeys, secret: kw.SecretKey, times: Times, runs: int
    ) -> None:
        """Times runs; the last result is compared."""
        evaluator = kw.Evaluator(self.parameters, keys)
        bootstrappers = [kw.Bootstrapper(plan) for plan in execution.bootstrapper_plans]
        backend = EncryptedBackend(evaluator, bootstrappers, plan=execution)
        backend.prepare(self.program)
        encryptor = kw.Encryptor(kw.KeyGenerator(secret).public_key())
        level, magnitude = self.program.input.level, self.program.input.magnitude
        rows = self.program.pack(self.sample)
        inputs = [encryptor.encrypt(row, len(row), level, magnitude) for row in rows]
        outputs = list[kw.Ciphertext]()
        for _ in range(runs):
            with times.run():
                outputs = backend.run(self.program, inputs)
        decrypt = kw.Decryptor(secret).decrypt
        result = self.program.unpack(np.asarray([decrypt(output) for output in outputs]))
        clear = run_clear(self.program, self.sample)
        times.error = float(np.abs(result - clear).max())
        times.bound = max(output.error_bound for output in outputs) * self.program.output.unit
        assert times.error <= min(times.bound, 1e-2 * np.abs(clear).max()), "the result is wrong"


class Bootstrap:
    """The bootstrap of a preset."""

    def __init__(self, preset: str) -> None:
        self.plan = kw.BootstrapperPlan.preset(preset)
        self.parameters = self.plan.parameters

    def planned(self, model: planning.CostModel, names: list[str]) -> dict[str, planning.KeyPlan]:
        return plans(convert_bootstrap(self.plan, "bootstrap"), model, names)

    def execution(self, plan: planning.KeyPlan) -> PlanExecution:
        return PlanExecution(plan, self.parameters, bootstraps=[self.plan])

    def run(
        self, execution: PlanExecution, keys: kw.EvaluationKeys, secret: kw.SecretKey, times: Times, runs: int
    ) -> None:
        """Times bootstraps; the last result is compared."""
        evaluator = kw.Evaluator(self.parameters, keys)
        bootstrapper = kw.Bootstrapper(execution.bootstrapper_plans[0])
        values = np.random.default_rng(2).uniform(-1, 1, self.plan.slots)
        encryptor = kw.Encryptor(kw.KeyGenerator(secret).public_key())
        level = self.plan.input_level
        ciphertext = encryptor.encrypt(values, slots=self.plan.slots, level=level, magnitude=1)
        result = ciphertext
        for _ in range(runs):
            with times.run():
                result = bootstrapper.bootstrap(evaluator, ciphertext)
        times.error = float(np.abs(kw.Decryptor(secret).decrypt(result) - values).max())
        times.bound = result.error_bound
        assert times.error <= times.bound, "the result is wrong"


def subject(options: argparse.Namespace) -> Network | Bootstrap:
    """The network or the bootstrap that the command line names."""
    return Network(options.model) if options.preset is None else Bootstrap(options.preset)


def child(options: argparse.Namespace) -> None:
    """One run, in a separate process. Prints the time, the peak memory and the counts of streaming."""
    kw.set_threads(1)
    ran, folder = subject(options), Path(options.child)
    execution = ran.execution(plan_file.load(folder / "plan.json"))
    secret, path = kw.SecretKey.load(folder / "secret.kw", ran.parameters), folder / "keys.kw"
    masters = None
    if execution.plan.masters is not None:
        masters = kw.keys.MasterKeys.load(folder / "masters.kw", ran.parameters)
    making = Times()
    with making.run():
        keys = execution.load_keys(path, masters, options.memory or None)
    times = Times(path if options.cold else None)
    ran.run(execution, keys, secret, times, options.runs)
    processor, wall = times.medians
    usage = resource.getrusage(resource.RUSAGE_SELF)
    record = {
        "seconds": processor,
        "wall": wall,
        "keys_wall": making.wall[0],
        "error": times.error,
        "bound": times.bound,
        "peak_rss": usage.ru_maxrss * 1024,
        # Linux counts blocks of 512 bytes that were read from a disk.
        "disk_bytes": usage.ru_inblock * 512,
        "streaming": keys.streaming,
    }
    print(json.dumps(record))


def measure(
    options: argparse.Namespace, folder: Path, memory: int = 0, cold: bool = False, runs: int = RUNS
) -> dict[str, Any]:
    """Run what a folder holds, in a separate process."""
    command = [sys.executable, "-m", "studies.plans_in_use", "--child", str(folder)]
    command += ["--memory", str(memory), "--runs", str(runs), *(["--cold"] if cold else [])]
    if options.model is not None:
        command += ["--model", str(options.model)]
    if options.preset is not None:
        command += ["--preset", options.preset]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    record: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return record


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.plans_in_use",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--model", type=Path, help="network (default: the digits of keywright demo)")
    parser.add_argument(
        "--preset", choices=kw.BootstrapperPlan.presets(), help="a bootstrap instead of a network"
    )
    parser.add_argument(
        "--share", type=float, default=0.5, help="of the keys' bytes, in memory (default 0.5)"
    )
    parser.add_argument("--plans", nargs="+", choices=PLANS, default=PLANS, help="which (default: all)")
    parser.add_argument("--derived", action="store_true", help="derive the first plan's keys as well")
    parser.add_argument("--turns", type=int, default=5, help="of the processes (default 5); 0 for none")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--memory", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--runs", type=int, default=RUNS, help=argparse.SUPPRESS)
    parser.add_argument("--cold", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options)
        return
    calibration = Calibration.stored()
    if calibration is None:
        print("this machine is not calibrated (keywright calibrate): predictions are of built-in weights")
    model = planning.CostModel() if calibration is None else calibration.model
    kw.set_threads(1)
    ran = subject(options)
    first: tuple[float, float] | None = None
    print(
        "plan       keys      bytes  predicted s  measured s  more, predicted  more, measured   peak memory"
    )
    for name, plan in ran.planned(model, options.plans).items():
        with TemporaryDirectory() as place:
            folder, execution = Path(place), ran.execution(plan)
            (folder / "plan.json").write_text(plan_file.to_json(plan), encoding="utf-8")
            secret = kw.SecretKey.generate(ran.parameters)
            secret.save(folder / "secret.kw")
            specs = execution.key_specs
            kw.KeyGenerator(secret).save_evaluation_keys(folder / "keys.kw", specs)
            seen = measure(options, folder)
            seconds = plan.seconds(model)
            first = first or (seconds, seen["seconds"])
            size = sum(spec.bytes for spec in specs)
            print(
                f"{name:8} {len(specs):6} {size:10} {seconds:12.3f} {seen['seconds']:11.3f} "
                f"{seconds - first[0]:16.3f} {seen['seconds'] - first[1]:15.3f} {seen['peak_rss']:13}",
                flush=True,
            )
            if name == "kds" and options.turns > 0:
                streamed(options, folder, execution, size)
            if name == "kds" and options.derived:
                derived(options, folder, ran, plan, model, size, seen)


def streamed(options: argparse.Namespace, folder: Path, execution: PlanExecution, size: int) -> None:
    """Print the cost of streaming: processes with all keys in memory and without take turns."""
    least = max(spec.bytes for spec in (*execution.key_specs, *execution.derived_specs))
    memory = max(least, int(options.share * size))
    kinds: dict[str, tuple[int, bool]] = {
        "all in memory": (0, False),
        "from the cache": (memory, False),
        "from the disk": (memory, True),
    }
    runs: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
    for _ in range(options.turns):
        for kind, arguments in kinds.items():
            runs[kind].append(measure(options, folder, *arguments))
    print(
        f"  streamed, {memory} of {size} bytes of keys in memory (the largest has {least}); medians of "
        f"{options.turns} turns of {RUNS} runs, least and most in brackets"
    )
    print("  keys            wall s                 than in memory            processor s   waited s a run")
    whole = runs["all in memory"]
    for kind, seen in runs.items():
        walls = [run["wall"] for run in seen]
        more = [run["wall"] / other["wall"] - 1 for run, other in zip(seen, whole, strict=True)]
        waited = [(run["streaming"] or {"waited_s": 0.0})["waited_s"] / RUNS for run in seen]
        processor = float(np.median([run["seconds"] for run in seen]))
        loss = f"{np.median(more):+6.1%} [{min(more):+.1%}, {max(more):+.1%}]"
        print(
            f"  {kind:15} {np.median(walls):.3f} [{min(walls):.3f}, {max(walls):.3f}] {loss:>25}"
            f"{processor:14.3f} {np.median(waited):15.3f}; peak memory "
            f"{max(run['peak_rss'] for run in seen)}, read from disks "
            f"{max(run['disk_bytes'] for run in seen)}; {json.dumps(seen[-1]['streaming'])}",
            flush=True,
        )


def derived(
    options: argparse.Namespace,
    folder: Path,
    ran: Network | Bootstrap,
    plan: planning.KeyPlan,
    model: planning.CostModel,
    size: int,
    whole: dict[str, Any],
) -> None:
    """Print bytes and times with master keys, beside the plan and a run with its own keys."""
    price = planning.DerivationPlanner(plan, model).priced[0]
    execution = ran.execution(price.planned)
    secret = kw.SecretKey.load(folder / "secret.kw", ran.parameters)
    (folder / "plan.json").write_text(plan_file.to_json(price.planned), encoding="utf-8")
    client, server = Times(), Times()
    with client.run():
        masters = execution.make_masters(secret)
        specs = execution.key_specs
        kw.KeyGenerator(secret).save_evaluation_keys(folder / "keys.kw", specs)
    masters.save(folder / "masters.kw")
    derivation = masters.derivation(execution.derived_specs, price.max_hops)
    counts = f"{len(derivation)} keys, {derivation.derived - len(derivation)} on the way"
    depth, count = derivation.depth, len(derivation)
    with server.run():
        for _ in derivation:
            pass
    sent = sum(spec.bytes for spec in specs) + masters.bytes
    assert sent == price.sent_bytes, "other bytes than planned"
    print(
        f"  derived from {len(masters)} master keys of {masters.bytes} bytes, at most {depth} steps: "
        f"{counts}; {len(specs)} keys sent beside them\n"
        f"    {sent} bytes sent instead of {size}; client {price.costs.client_seconds:.2f} s predicted, "
        f"{client.medians[0]:.2f} s measured\n"
        f"    server {price.costs.server_seconds:.2f} s predicted, {server.medians[0]:.2f} s measured, "
        f"{server.medians[0] / count:.3f} s a key; noise {price.costs.noise_bits:.2f} bits instead of "
        f"{plan.noise_bits(model):.2f}",
        flush=True,
    )
    least = max(spec.bytes for spec in (*specs, *execution.derived_specs))
    memory = masters.bytes + max(least, int(options.share * price.stored_bytes))
    for kind, bound, runs in (("all in memory", 0, RUNS), (f"within {memory} bytes", memory, 1)):
        seen = measure(options, folder, bound, runs=runs)
        print(
            f"    {kind}, of {masters.bytes + price.stored_bytes}: {seen['wall']:.3f} s on the wall after "
            f"{seen['keys_wall']:.1f} s for the keys; error {seen['error']:.3e}, bound {seen['bound']:.3e} "
            f"(with the plan's own keys {whole['error']:.3e}, {whole['bound']:.3e}); peak memory "
            f"{seen['peak_rss']}; {json.dumps(seen['streaming'])}",
            flush=True,
        )


if __name__ == "__main__":
    main()
