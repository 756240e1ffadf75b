"""Runs programs with a back end that counts, and prints what it computed: `test_prediction` runs this in a
process of its own, because a process has one back end."""

import json
import os
import sys
from collections.abc import Callable

os.environ["KEYWRIGHT_BACKEND"] = "counted"

import keywright as kw
from keywright._core import kernel_counts
from keywright.nn.encrypted import EncryptedBackend
from keywright.plan.execution import PlanExecution
from tests.plan.test_execution import bootstrapping, digits, mnist
from tests.plan.test_prediction import planned_bootstrap, planned_network


def counted(work: Callable[[], object]) -> dict[str, list[int]]:
    """What something computes, in words, modulo narrow primes and wide ones."""
    before = kernel_counts()
    work()
    after = kernel_counts()
    return {name: [b - a for a, b in zip(before[name], after[name], strict=True)] for name in after}


def network(name: str) -> dict[str, list[int]]:
    """A network with the keys of its plan."""
    side = digits() if name == "digits" else mnist()
    execution = PlanExecution(planned_network(side), side.parameters, side.program)
    keys = side.generator.evaluation_keys(relinearization=False, specs=execution.key_specs())
    backend = EncryptedBackend(kw.Evaluator(side.parameters, execution.follow(keys)), plan=execution)
    backend.prepare(side.program)
    return counted(lambda: backend.run(side.program, side.inputs))


def bootstrap(*, apart: bool) -> dict[str, list[int]]:
    """A bootstrap with the keys of its plan."""
    plan, secret = bootstrapping(apart)
    execution = PlanExecution(planned_bootstrap(plan), plan.parameters, bootstraps=[plan])
    generator = kw.KeyGenerator(secret, bytes(32))
    keys = generator.evaluation_keys(relinearization=False, specs=execution.key_specs())
    evaluator = kw.Evaluator(plan.parameters, execution.follow(keys))
    bootstrapper = kw.Bootstrapper(execution.bootstrapper_plans[0])
    encryptor = kw.Encryptor(generator.public_key(), bytes(32))
    ciphertext = encryptor.encrypt([0.5], slots=plan.slots, level=plan.input_level)
    return counted(lambda: bootstrapper.bootstrap(evaluator, ciphertext))


if __name__ == "__main__":
    found = {"digits": network("digits"), "mnist": network("mnist")}
    found |= {"apart": bootstrap(apart=True), "fused": bootstrap(apart=False)}
    json.dump(found, sys.stdout)
