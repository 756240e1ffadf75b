"""`small_model.py FOLDER`: the shipped digits for a small ring without security, for quick tests."""

import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import keywright as kw
from keywright import nn
from keywright.serve import Model

Q_BITS = [42, 36, 36, *[38] * 5, *[50] * 8, 46, 46]
ENTRY: dict[str, Any] = {
    "slots": 512,
    "values": "real",
    "slots_to_coeffs": 2,
    "coeffs_to_slots": 2,
    "log_ratio": 10,
    "cosine_degree": 50,
    "double_angles": 2,
    "arcsine_degree": 1,
    "key_budget": "fewest",
}


def main() -> None:
    """Make the folder."""
    parameters = kw.Parameters.from_bits(10, Q_BITS, [50, 50, 50], 38, insecure=True)
    plan = kw.BootstrapperPlan(parameters, **ENTRY)
    model = (files("keywright") / "data" / "digits.onnx").read_bytes()
    program = nn.compile(
        model, slots=plan.slots, levels=plan.output_level, output_level=plan.input_level, fixed_slots=True
    )
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True)
    Model("digits", program, parameters, (), plan, ENTRY, tuple("0123456789")).save(folder)


if __name__ == "__main__":
    main()
