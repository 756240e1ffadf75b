"""Plans in use: predicted beside measured for a network and for a bootstrap, and what streaming keys costs.

    python benchmarks/planned.py [--model NETWORK.onnx] [--preset NAME] [--plans kds] [--share 0.5]
        [--derived]

Processor times of one thread; of streaming the wall's are compared. Predictions are those of this machine's
calibration (keywright calibrate), of key switches alone; what is measured is everything. So beside each plan
stands the difference from the first one, predicted and measured: what else there is to do is the same under
every plan, but for divisions that linear transforms save.
Every result is decrypted and compared. Peak memory is that of a process of its own for each run. Runs with
keys in memory and with streamed keys take turns. With --derived the keys of the plan kds are derived from
master keys: bytes and seconds beside the plan's, and a run that derives them within the same memory.
"""

import argparse
import json
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
from keywright.commands.session import compile_model
from keywright.nn.checking import run_clear
from keywright.nn.encrypted import EncryptedBackend, decrypt_result, encrypt_sample
from keywright.plan import plan_file
from keywright.plan.calibration import stored_model
from keywright.plan.converters.network import convert, convert_bootstrap
from keywright.plan.execution import PlanExecution

RUNS = 3
PLANS = ["kds", "half", "quarter", "fewest"]


class Times:
    """Processor and wall time of several runs."""

    def __init__(self) -> None:
        self.processor: list[float] = []
        self.wall: list[float] = []

    @contextmanager
    def run(self) -> Iterator[None]:
        """Times what it encloses."""
        processor, wall = process_time(), perf_counter()
        yield
        self.processor.append(process_time() - processor)
        self.wall.append(perf_counter() - wall)

    @property
    def medians(self) -> tuple[float, float]:
        """Of both."""
        return float(np.median(self.processor)), float(np.median(self.wall))


def plans(program: planning.Program, model: planning.CostModel) -> dict[str, planning.KeyPlan]:
    """The fastest keys for every use, plans with a half and a quarter of their bytes, and the fewest."""
    search = planning.FrontierSearch(program, model, max_hops=2)
    points = sorted(search.descend(), key=lambda point: point.seconds)
    out = {"kds": planning.STRATEGIES["kds"].plan(program, model)}
    for name, share in (("half", 0.5), ("quarter", 0.25), ("fewest", 0.0)):
        most = share * out["kds"].stored_bytes
        fitting = [point for point in points if point.stored_bytes <= most]
        smallest = min(points, key=lambda point: point.stored_bytes)
        out[name] = search.plan(name, fitting[0] if fitting else smallest)
    return out


class Network:
    """A network with an owner of keys."""

    def __init__(self, model: Path | None) -> None:
        data = files("keywright") / "data"
        self.compiled = compile_model(model or (data / "digits.onnx").read_bytes(), None, None)
        self.parameters, self.program = self.compiled.parameters, self.compiled.program
        self.bootstraps = list(self.compiled.plans)
        shape = self.program.input_shape
        self.sample = np.random.default_rng(1).uniform(0, 1, shape)

    def planned(self, model: planning.CostModel) -> dict[str, planning.KeyPlan]:
        return plans(convert(self.program, self.parameters, "network", self.bootstraps), model)

    def execution(self, plan: planning.KeyPlan) -> PlanExecution:
        return PlanExecution(plan, self.parameters, self.program, self.bootstraps)

    def run(self, execution: PlanExecution, keys: kw.EvaluationKeys, secret: kw.SecretKey) -> Times:
        """Times of runs whose last result was compared."""
        evaluator = kw.Evaluator(self.parameters, keys)
        bootstrappers = [kw.Bootstrapper(plan) for plan in execution.bootstrapper_plans]
        backend = EncryptedBackend(evaluator, bootstrappers, plan=execution)
        backend.prepare(self.program)
        encryptor = kw.Encryptor(kw.KeyGenerator(secret).public_key())
        inputs = encrypt_sample(self.program, encryptor, self.sample)
        times, outputs = Times(), list[kw.Ciphertext]()
        for _ in range(RUNS):
            with times.run():
                outputs = backend.run(self.program, inputs)
        result = decrypt_result(self.program, kw.Decryptor(secret), outputs)
        clear = run_clear(self.program, self.sample)
        assert np.abs(result - clear).max() <= 1e-2 * np.abs(clear).max(), "the result is wrong"
        return times


class Bootstrap:
    """A bootstrap of a preset."""

    def __init__(self, preset: str) -> None:
        self.plan = kw.BootstrapperPlan.preset(preset)
        self.parameters = self.plan.parameters

    def planned(self, model: planning.CostModel) -> dict[str, planning.KeyPlan]:
        return plans(convert_bootstrap(self.plan, "bootstrap"), model)

    def execution(self, plan: planning.KeyPlan) -> PlanExecution:
        return PlanExecution(plan, self.parameters, bootstraps=[self.plan])

    def run(self, execution: PlanExecution, keys: kw.EvaluationKeys, secret: kw.SecretKey) -> Times:
        """Times of bootstraps whose last result was compared."""
        evaluator = kw.Evaluator(self.parameters, keys)
        bootstrapper = kw.Bootstrapper(execution.bootstrapper_plans[0])
        values = np.random.default_rng(2).uniform(-1, 1, self.plan.slots)
        encryptor = kw.Encryptor(kw.KeyGenerator(secret).public_key())
        ciphertext = encryptor.encrypt(values, slots=self.plan.slots, level=self.plan.input_level)
        times, result = Times(), ciphertext
        for _ in range(RUNS):
            with times.run():
                result = bootstrapper.bootstrap(evaluator, ciphertext)
        error = np.abs(kw.Decryptor(secret).decrypt(result) - values).max()
        assert error <= result.error_bound, "the result is wrong"
        return times


def subject(options: argparse.Namespace) -> Network | Bootstrap:
    """What is run."""
    return Network(options.model) if options.preset is None else Bootstrap(options.preset)


def child(options: argparse.Namespace) -> None:
    """One run, in a process of its own: prints time, peak memory, what streaming did."""
    kw.set_threads(1)
    ran, folder = subject(options), Path(options.child)
    execution = ran.execution(plan_file.load(folder / "plan.json"))
    secret, path = kw.SecretKey.load(folder / "secret.kw", ran.parameters), folder / "keys.kw"
    masters = None
    if execution.plan.masters is not None:
        masters = kw.MasterKeys.load(folder / "masters.kw", ran.parameters)
    keys = execution.load_keys(path, masters, options.memory or None)
    processor, wall = ran.run(execution, keys, secret).medians
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    record = {"seconds": processor, "wall": wall, "peak_rss": peak, "streaming": keys.streaming}
    print(json.dumps(record))


def measure(options: argparse.Namespace, folder: Path, memory: int = 0) -> dict[str, Any]:
    """A run of what lies in a folder."""
    command = [sys.executable, __file__, "--child", str(folder), "--memory", str(memory)]
    if options.model is not None:
        command += ["--model", str(options.model)]
    if options.preset is not None:
        command += ["--preset", options.preset]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    record: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return record


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", type=Path, help="network (default: the digits of keywright demo)")
    parser.add_argument("--preset", choices=kw.bootstrap_presets(), help="a bootstrap instead of a network")
    parser.add_argument(
        "--share", type=float, default=0.5, help="of the keys' bytes, in memory (default 0.5)"
    )
    parser.add_argument("--plans", nargs="+", choices=PLANS, default=PLANS, help="which (default: all)")
    parser.add_argument("--derived", action="store_true", help="derive the first plan's keys as well")
    parser.add_argument("--turns", type=int, default=3, help="of both processes (default 3)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--memory", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options)
        return
    model = stored_model()
    if model is None:
        parser.error("this machine is not calibrated; run keywright calibrate")
    kw.set_threads(1)
    ran = subject(options)
    first: tuple[float, float] | None = None
    print(
        "plan       keys      bytes  predicted s  measured s  more, predicted  more, measured   peak memory"
    )
    for name, plan in ran.planned(model).items():
        if name not in options.plans:
            continue
        with TemporaryDirectory() as place:
            folder, execution = Path(place), ran.execution(plan)
            (folder / "plan.json").write_text(plan_file.to_json(plan), encoding="utf-8")
            secret = kw.SecretKey.generate(ran.parameters)
            secret.save(folder / "secret.kw")
            specs = execution.key_specs()
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
            if name == "kds":
                streamed(options, folder, execution, size)
                if options.derived:
                    derived(options, folder, ran, plan, model, size)


def streamed(options: argparse.Namespace, folder: Path, execution: PlanExecution, size: int) -> None:
    """Print what streaming costs: processes that hold all keys and that do not, in turns."""
    least = max(spec.bytes + 32 for spec in (*execution.key_specs(), *execution.derived_specs()))
    memory = max(least, int(options.share * size))
    runs = [(measure(options, folder), measure(options, folder, memory)) for _ in range(options.turns)]
    whole, part = (min(run[i]["wall"] for run in runs) for i in (0, 1))
    peaks = [max(run[i]["peak_rss"] for run in runs) for i in (0, 1)]
    print(
        f"  streamed, {memory} of {size} bytes of keys in memory (the largest has {least}): {part:.3f} s "
        f"instead of {whole:.3f} s on the wall, {part / whole - 1:+.1%}; peak memory {peaks[1]} instead of "
        f"{peaks[0]}; {json.dumps(runs[-1][1]['streaming'])}",
        flush=True,
    )


def derived(
    options: argparse.Namespace,
    folder: Path,
    ran: Network | Bootstrap,
    plan: planning.KeyPlan,
    model: planning.CostModel,
    size: int,
) -> None:
    """Print what master keys do for a plan, beside what was planned."""
    price = planning.DerivationPlanner(plan, model).priced[0]
    execution = ran.execution(price.planned)
    secret = kw.SecretKey.load(folder / "secret.kw", ran.parameters)
    (folder / "plan.json").write_text(plan_file.to_json(price.planned), encoding="utf-8")
    client, server = Times(), Times()
    with client.run():
        masters = execution.make_masters(secret)
        specs = execution.key_specs()
        kw.KeyGenerator(secret).save_evaluation_keys(folder / "keys.kw", specs)
    masters.save(folder / "masters.kw")
    with server.run():
        for _ in masters.derivation(execution.derived_specs(), price.max_hops):
            pass
    sent = sum(spec.bytes for spec in specs) + masters.bytes - 32 * len(masters)
    assert sent == price.sent_bytes, "other bytes than planned"
    least = max(spec.bytes + 32 for spec in (*specs, *execution.derived_specs()))
    memory = masters.bytes + max(least, int(options.share * price.stored_bytes))
    seen = measure(options, folder, memory)
    print(
        f"  derived from {len(masters)} master keys: {sent} bytes sent instead of {size}; client "
        f"{price.client_seconds:.2f} s predicted, {client.medians[0]:.2f} s measured; server "
        f"{price.server_seconds:.2f} s predicted, {server.medians[0]:.2f} s measured, noise "
        f"{price.noise_bits:.2f} bits instead of {plan.noise_bits(model):.2f}; within {memory} bytes, of "
        f"{masters.bytes + price.stored_bytes}: {seen['wall']:.3f} s on the wall, peak memory "
        f"{seen['peak_rss']}; {json.dumps(seen['streaming'])}",
        flush=True,
    )


if __name__ == "__main__":
    main()
