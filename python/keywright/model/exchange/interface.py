"""The manifest of a program: what its clients know of it, without the weights."""

import numpy as np

from keywright import compiler
from keywright._core import Parameters
from keywright.model.served.entry import Entry
from keywright.model.served.manifest import Manifest, Packing, Places
from keywright.program.file.storage import digest
from keywright.program.operands.layout import Layout

FRACTION_BITS = 24
"""Fraction bits of a thin client's numbers: more than bootstrapping preserves."""


def input_range(program: compiler.Program, entry: Entry | None) -> tuple[float, float] | None:
    """Return (low, high) of the inputs, None if unbounded. Thin clients divide inputs by the program's input
    scale, and the results must be at most 1 in size."""
    if entry is None:
        return program.input_range
    most = program.input_scale
    low, high = program.input_range or (-most, most)
    return max(low, -most), min(high, most)


def interface(
    program: compiler.Program, parameters: Parameters, entry: Entry | None, name: str, labels: tuple[str, ...]
) -> Manifest:
    """Return the manifest without keys, which need a plan."""
    client = None if entry is None else entry.plan.client_parameters(FRACTION_BITS)
    packing: Packing = "slots" if client is None else "coefficients"
    ring = program.input_log_n
    slots = [program.ring_slots(each) for each in (ring, program.rings[program.outputs[0]])]
    if entry is not None:
        slots = [entry.plan.slots] * 2
    entering = program.input_shape if program.binning is None else (program.binning.bits,)
    return Manifest(
        name=name,
        packing=packing,
        client=b"" if client is None else client.to_bytes(),
        parameters=parameters.to_bytes(),
        key_set=b"",
        key_bytes=0,
        input=_places(program.input_layout, entering, slots[0]),
        output=_places(program.output_layout, program.output_shape, slots[1]),
        input_level=program.input_level if client is None else 0,
        output_level=program.output_level if client is None else 0,
        scale=round(parameters.scale) if client is None else client.scale,
        input_range=input_range(program, entry),
        divisor=program.input_scale,
        factor=float(program.output_scale),
        program=digest(program),
        labels=labels,
        client_part=program.client_part,
        input_normalisation=program.input_normalisation,
        output_normalisation=program.output_normalisation,
        input_ring=ring,
        binning=program.binning,
        first_steps=program.first_steps,
    )


def _places(layout: Layout, shape: tuple[int, ...], slots: int) -> Places:
    """Return the places of a layout's values in ciphertexts of ``slots`` slots, at least the layout's
    period."""
    repeat = slots // layout.period
    ciphertext, slot = np.divmod(layout.positions.astype(np.int64), layout.slots)
    start, stride = ciphertext * slots + slot, 1 if repeat == 1 else layout.period
    places = tuple(map(int, start))
    return Places(tuple(shape), layout.batch, layout.ciphertexts, slots, places, repeat, stride)
