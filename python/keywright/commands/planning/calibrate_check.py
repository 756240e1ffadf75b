"""Compares whole programs with the planner's predictions: a bootstrap and a network.

The plan has a key for every rotation at its level (`kds`), and the engine follows the plan. Results are
decrypted and checked. Like the calibration, this uses one thread.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np

import keywright as kw
from keywright import plan as planning
from keywright.errors import NoiseError
from keywright.plan import PlanExecution, PlanningProblem, predict_plan
from keywright.plan.cost import Calibration, Gauge
from keywright.plan.keys import TimePrediction
from keywright.runtime import run_clear

BOOTSTRAPS = {15: "N15_QP861_L3_S37", 16: "N16_QP1732_L9_S45"}
"""The measured bootstrapping by base-2 logarithm of the ring degree."""

RUNS = 5
ENOUGH = 10.0
"""Seconds of timed runs after which no further run starts."""
GAUGED = 5
"""How often the speed gauge is read before and after a run."""


@dataclass(frozen=True)
class ProgramCheck:
    """A measured program.

    Attributes:
        what: a description.
        predicted: predicted seconds.
        seconds: processor seconds: the median of at most five runs after a warm-up run.
        steady: the same, scaled to the speed of the calibration.
    """

    what: str
    predicted: TimePrediction
    seconds: float
    steady: float

    @property
    def error(self) -> float:
        """Relative error of the prediction."""
        return abs(self.predicted.seconds / self.seconds - 1)

    @property
    def steady_error(self) -> float:
        """Relative error of the prediction against the time scaled to the speed of the calibration."""
        return abs(self.predicted.seconds / self.steady - 1)


def check_bootstrap(preset: str, calibration: Calibration) -> ProgramCheck:
    """Run a bootstrapping on random values.

    Args:
        preset: one of `keywright.BootstrapperPlan.presets()`.
        calibration: predicts its time.

    Raises:
        NoiseError: the error of the result exceeds its bound.
    """
    kw.set_threads(1)
    model = calibration.model
    bootstrap = kw.BootstrapperPlan.preset(preset)
    parameters = bootstrap.parameters
    planned = planning.STRATEGIES["kds"].plan(PlanningProblem.of_bootstrap(bootstrap, preset).workload, model)
    execution = PlanExecution(planned, parameters, bootstraps=[bootstrap])
    secret = kw.SecretKey.generate(parameters)
    generator = kw.KeyGenerator(secret)
    keys = generator.evaluation_keys(relinearization=False, specs=execution.key_specs)
    evaluator = kw.Evaluator(parameters, execution.follow(keys))
    bootstrapper = kw.Bootstrapper(execution.bootstrapper_plans[0])
    values = np.random.default_rng(1).uniform(-1, 1, bootstrap.slots)
    encryptor = kw.Encryptor(generator.public_key())
    ciphertext = encryptor.encrypt(values, slots=bootstrap.slots, level=bootstrap.input_level)
    results: list[kw.Ciphertext] = []
    work = partial(bootstrapper.bootstrap, evaluator, ciphertext)
    seconds, steady = _time(lambda: results.append(work()), calibration, parameters.log_n)
    error = float(np.abs(kw.Decryptor(secret).decrypt(results[-1]) - values).max())
    if not error <= results[-1].error_bound:
        raise NoiseError(
            f"{preset}: the result is off by {error}, above its bound {results[-1].error_bound}",
            code="wrong_result",
        )
    return ProgramCheck(f"bootstrap {preset}", predict_plan(planned, model), seconds, steady)


def check_network(model_file: Path | None, calibration: Calibration) -> ProgramCheck:
    """Run a network on a synthetic sample.

    Args:
        model_file: an ONNX model; None for the digits network of the package.
        calibration: predicts its time.

    Raises:
        ModelRefusedError: the model cannot be compiled.
        NoiseError: the error of the result exceeds its bound.
    """
    kw.set_threads(1)
    model = calibration.model
    name = "digits" if model_file is None else model_file.stem
    source = (files("keywright") / "data" / "digits.onnx").read_bytes() if model_file is None else model_file
    compiled = kw.compile(source, batch=1)
    problem = PlanningProblem.of_program(compiled.program, compiled.parameters, compiled.bootstraps, name)
    planned = planning.STRATEGIES["kds"].plan(problem.workload, model)
    compiled = compiled.with_plan(planned)
    network, client, runner = compiled.program, compiled.client(), compiled.runner()
    keys = compiled.execution.follow(client.evaluation_keys())
    sample = np.random.default_rng(1).uniform(0, 1, network.input.shape)
    inputs = [compiled.requests.read(data) for data in client.encrypt_batch(sample[None])]
    results: list[list[kw.Ciphertext]] = []
    seconds, steady = _time(
        lambda: results.append(runner.run(keys, inputs)), calibration, compiled.parameters.log_n
    )
    outcome = client.decrypt_batch([compiled.requests.write(result) for result in results[-1]], 1)[0]
    error = float(np.abs(outcome - run_clear(network, sample)).max())
    bound = max(output.error_bound for output in results[-1]) * network.output.unit
    if not error <= bound:
        raise NoiseError(
            f"{name}: the result is off by {error}, above its bound {bound}", code="wrong_result"
        )
    what = f"network {name}, ring degree 2^{compiled.parameters.log_n}"
    return ProgramCheck(what, predict_plan(planned, model), seconds, steady)


def _time(work: Callable[[], object], calibration: Calibration, log_n: int) -> tuple[float, float]:
    """Return the median time of runs after a warm-up run, as measured and scaled to the speed of the
    calibration."""
    ring = calibration.ring_for(log_n)
    gauge = Gauge(ring)
    work()
    times: list[float] = []
    slowness: list[float] = []
    before = [gauge.seconds() for _ in range(GAUGED)]
    while len(times) < RUNS and sum(times) < ENOUGH:
        start = process_time()
        work()
        times.append(process_time() - start)
        after = [gauge.seconds() for _ in range(GAUGED)]
        slowness.append(median(before + after) / calibration.gauges[ring])
        before = after
    steady = median(seconds / slow for seconds, slow in zip(times, slowness, strict=True))
    return median(times), steady
