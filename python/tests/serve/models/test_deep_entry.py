"""A program with bootstraps and smaller rings that a thin client enters and leaves in fewer slots."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import keywright as kw
import numpy as np
import pytest
from keywright import compiler
from keywright.errors.model import FolderError
from keywright.model import Model
from keywright.plan.ring.entry import Entry, deep_entry, deep_literal, read_entry
from keywright.runtime import run_clear
from tests.compiler.conftest import build_model
from tests.compiler.placement.test_bootstrapped_network import residual_network
from tests.compiler.placement.test_rings_encrypted import ring_parameters, rings_of
from tests.serve import network

PRESET = "N16_QP1732_L9_S45_real"
ENTRY = {**network.ENTRY, "slots": 256}


@pytest.fixture(scope="module")
def model() -> Model:
    parameters = ring_parameters()
    own = kw.BootstrapperPlan(parameters, **network.ENTRY, slots=512, input_log_n=10)
    samples = np.random.default_rng(8).uniform(-1, 1, (6, 2, 8, 8))
    target = compiler.Target(
        slots=own.slots,
        levels=own.output_level,
        output_level=own.input_level,
        bootstraps=(dataclasses.replace(compiler.Bootstrap.of(own), input_log_n=0),),
        rings=rings_of(own),
        packing="coefficients",
    )
    program = compiler.compile_program(
        residual_network(build_model), target, compiler.Fit(calibration=samples)
    )
    return Model("deep", program, parameters, [own], Entry(kw.BootstrapperPlan(parameters, **ENTRY), ENTRY))


def test_a_thin_client_enters_a_deep_program(model: Model) -> None:
    """Its secret key is in the largest ring; keys are in all rings; the answer is the program's."""
    assert model.entry is not None
    assert model.client_parameters is not None
    assert (model.entry.plan.slots, model.program.slots) == (256, 512)
    assert {spec.log_n for spec in model.specs} == {12, 11, 10}
    secret = kw.SecretKey.generate(model.parameters)
    client = kw.thin.Client.from_secret_bytes(secret.to_bytes(), model.client_parameters)
    keys = kw.KeyGenerator(secret).evaluation_keys(relinearization=False, specs=model.specs)
    sample = np.random.default_rng(9).uniform(-1, 1, (2, 8, 8))
    one = 2.0**model.client_parameters.fraction_bits
    rows = model.manifest.input.places.pack(sample[np.newaxis])
    sent = [client.encrypt(np.rint(row * one).astype(np.int64), dropped=0) for row in rows]
    steps: list[None] = []
    results = model.runner().run(
        model.execution.follow(keys),
        [model.requests.read(data) for data in sent],
        on_step=lambda: steps.append(None),
    )
    answers = np.asarray([client.decrypt(model.requests.write(result)) / one for result in results])
    scores = model.manifest.output.places.unpack(answers, 1)[0] * model.manifest.output.scale
    error = np.abs(scores - run_clear(model.program, sample)).max()
    assert error <= max(result.error_bound for result in results) * model.manifest.output.scale
    assert len(steps) == model.steps


def test_a_folder_has_the_entry(model: Model, tmp_path: Path) -> None:
    """The numbers of a plan make it again; wrong ones are refused."""
    again = read_entry(model.program, model.bootstraps, model.parameters, ENTRY)
    assert again is not None
    assert model.entry is not None
    assert repr(again.plan) == repr(model.entry.plan)
    with pytest.raises(
        FolderError, match="do not describe a bootstrapping", check=lambda error: error.code == "model_folder"
    ):
        read_entry(model.program, model.bootstraps, model.parameters, {**ENTRY, "slots": 3})
    with pytest.raises(
        FolderError, match="do not describe a bootstrapping", check=lambda error: error.code == "model_folder"
    ):
        read_entry(
            model.program,
            model.bootstraps,
            model.parameters,
            {"preset": "N16_QP1732_L9_S45_real", "slots": 4},
        )


def test_an_entry_holds_inputs_and_outputs(model: Model) -> None:
    """In fewer slots than the bootstraps of the program have, values would fall on each other."""
    small = kw.BootstrapperPlan(model.parameters, **{**ENTRY, "slots": 64})
    with pytest.raises(FolderError, match="512 slots", check=lambda error: error.code == "model_folder"):
        dataclasses.replace(model, entry=Entry(small, {}))
    chosen = deep_entry(model.program)
    assert chosen.slots >= model.program.input.layout.period
    assert deep_literal(chosen)["output_level"] == model.program.operands.bootstraps[0].output_level
