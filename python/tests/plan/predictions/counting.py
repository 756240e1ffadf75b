"""Runs programs with a counting back end, and prints the counts.

`test_prediction` runs this in a separate process, because a process has one back end.
"""

import json
import os
import sys
from collections.abc import Callable
from functools import partial

os.environ["KEYWRIGHT_BACKEND"] = "counted"

import keywright as kw
from keywright._core import kernel_counts
from keywright.plan.cost.gauge import CHAINS
from keywright.plan.cost.measuring import cases
from keywright.plan.keys.execution import PlanExecution
from keywright.runtime.encrypted.backend import EncryptedBackend
from tests.plan.predictions.test_prediction import BOOTSTRAPS, planned_bootstrap, planned_network
from tests.plan.test_derived import wide_derivation
from tests.plan.test_execution import bootstrapping, digits, mnist


def counted(work: Callable[[], object]) -> dict[str, list[int]]:
    """Return the counts of some work, in words, modulo narrow primes and wide ones."""
    before = kernel_counts()
    work()
    after = kernel_counts()
    return {name: [b - a for a, b in zip(before[name], after[name], strict=True)] for name in after}


def network(name: str) -> dict[str, list[int]]:
    """A network with the keys of its plan."""
    side = digits() if name == "digits" else mnist()
    execution = PlanExecution(planned_network(side), side.parameters, side.program)
    keys = side.generator.evaluation_keys(relinearization=False, specs=execution.key_specs)
    backend = EncryptedBackend(kw.Evaluator(side.parameters, execution.follow(keys)), plan=execution)
    backend.prepare(side.program)
    return counted(lambda: backend.run(side.program, side.inputs))


def bootstrap(*, apart: bool, values: str) -> dict[str, list[int]]:
    """A bootstrap with the keys of its plan, of two ciphertexts if that is for pairs."""
    plan, secret = bootstrapping(apart, values)
    execution = PlanExecution(planned_bootstrap(plan), plan.parameters, bootstraps=[plan])
    generator = kw.KeyGenerator(secret, bytes(32))
    keys = generator.evaluation_keys(relinearization=False, specs=execution.key_specs)
    evaluator = kw.Evaluator(plan.parameters, execution.follow(keys))
    bootstrapper = kw.Bootstrapper(execution.bootstrapper_plans[0])
    encryptor = kw.Encryptor(generator.public_key(), bytes(32))
    ciphertext = encryptor.encrypt([0.5], slots=plan.slots, level=plan.input_level)
    if values == "pair":
        return counted(lambda: bootstrapper.bootstrap_pair(evaluator, ciphertext, ciphertext))
    return counted(lambda: bootstrapper.bootstrap(evaluator, ciphertext))


def calibrated(log_n: int) -> dict[str, dict[str, list[int]]]:
    """Key switches that a calibration measures, fitted to and held out, by their place in the list."""
    out = {}
    q, p = CHAINS[log_n]
    parameters = kw.Parameters.from_bits(log_n, q, p, 40)
    generator = kw.KeyGenerator(kw.SecretKey.generate(parameters))
    encryptor = kw.Encryptor(generator.public_key())
    for place, case in enumerate([*cases(log_n), *cases(log_n, held_out=True)]):
        shape, steps = case.shape, list(range(1, case.count + 1))
        alpha = min(shape.alpha, max(shape.level + 1, shape.special))
        special = list(shape.special_primes)
        specs = [
            kw.KeySpec.rotation(parameters, step, shape.level, alpha, shape.seeded, special) for step in steps
        ]
        evaluator = kw.Evaluator(parameters, generator.evaluation_keys(relinearization=False, specs=specs))
        ciphertext = encryptor.encrypt([0.5], level=case.level)
        rotate = partial(evaluator.rotate_hoisted, ciphertext, steps)
        out[f"{log_n} {place}"] = counted(rotate)
    return out


def derived() -> dict[str, list[int]]:
    """Keys that are derived, more from one than are derived at once."""
    derivation = wide_derivation()
    return counted(lambda: list(derivation))


if __name__ == "__main__":
    counts = {"digits": network("digits"), "mnist": network("mnist")}
    counts |= calibrated(13) | calibrated(14)
    counts |= {name: bootstrap(apart=apart, values=values) for name, (apart, values) in BOOTSTRAPS.items()}
    counts["derived"] = derived()
    json.dump(counts, sys.stdout)
