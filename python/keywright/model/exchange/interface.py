"""The manifest of a program: the facts that its clients know, without the weights."""

import numpy as np

from keywright._core import Parameters
from keywright.model.served.input_output import ManifestInput, ManifestOutput, Places
from keywright.model.served.manifest import CiphertextFormat, KeyList, Manifest, Packing
from keywright.plan.ring.entry import Entry
from keywright.program.file.storage import digest
from keywright.program.operands.layout import Layout
from keywright.program.program import Program

FRACTION_BITS = 24
"""Fraction bits of a thin client's numbers: more than bootstrapping preserves."""


def input_range(program: Program, entry: Entry | None) -> tuple[float, float] | None:
    """Return (low, high) of the inputs, None if unbounded. Thin clients divide inputs by the program's input
    scale, and the results must be at most 1 in size; clients that normalise inputs check the results."""
    if entry is None or program.input.normalisation is not None:
        return program.input.range
    most = program.input.scale
    low, high = program.input.range or (-most, most)
    return max(low, -most), min(high, most)


def interface(
    program: Program, parameters: Parameters, entry: Entry | None, name: str, labels: tuple[str, ...]
) -> Manifest:
    """Return the manifest without keys, which need a plan."""
    client = None if entry is None else entry.plan.client_parameters(FRACTION_BITS)
    packing: Packing = "slots" if client is None else "coefficients"
    ring = program.input.log_n
    slots = [program.ring_slots(each) for each in (ring, program.rings[program.output.ciphertexts[0]])]
    if entry is not None:
        slots = [entry.plan.slots] * 2
    entering = (
        program.input.shape if program.input.steps.binning is None else (program.input.steps.binning.bits,)
    )
    scale = round(parameters.scale) if client is None else client.scale
    return Manifest(
        name,
        digest(program),
        CiphertextFormat(packing, parameters.to_bytes(), b"" if client is None else client.to_bytes(), scale),
        KeyList(),
        ManifestInput(
            _places(program.input.layout, entering, slots[0]),
            program.input.level if client is None else 0,
            range=input_range(program, entry),
            scale=program.input.scale,
            normalisation=program.input.normalisation,
            steps=program.input.steps,
            log_n=ring,
        ),
        ManifestOutput(
            _places(program.output.layout, program.output.shape, slots[1]),
            program.output.level if client is None else 0,
            labels,
            scale=float(program.output.scale),
            normalisation=program.output.normalisation,
            client_part=program.output.client_part,
            image=program.output.image,
        ),
    )


def _places(layout: Layout, shape: tuple[int, ...], slots: int) -> Places:
    """Return the places of a layout's values in ciphertexts of ``slots`` slots, at least the layout's
    period."""
    repeat = slots // layout.period
    ciphertext, slot = np.divmod(layout.positions.astype(np.int64), layout.slots)
    start, stride = ciphertext * slots + slot, 1 if repeat == 1 else layout.period
    places = tuple(map(int, start))
    own = (tuple(shape), layout.batch, layout.ciphertexts, slots, places)
    return Places(*own, repeat, stride, layout.parts)
