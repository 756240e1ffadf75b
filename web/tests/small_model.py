"""`small_model.py FOLDER digits|words|colours|slots`: quick models in a small ring without security.

The shipped digits, a version of them that says words, a network that says which of red, green and blue a
picture of 8 x 8 has most of; or the digits for clients that encrypt slots, with small keys at 128 bits.
"""

import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import onnx
from keywright import compiler
from keywright.model import Entry, Model
from onnx import TensorProto, helper, numpy_helper

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


LABELS = {
    "digits": tuple("0123456789"),
    "words": ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    "colours": ("red", "green", "blue"),
    "slots": tuple("0123456789"),
}
KEY_BYTES = 18 << 20
"""The bytes of keys of the page's model in the server's memory, as in the Makefile."""


def colours() -> bytes:
    """The mean of each channel, as ONNX."""
    weight = np.kron(np.eye(3), np.full((1, 64), 1 / 64)).astype(np.float32)
    nodes = [
        helper.make_node("Flatten", ["image"], ["flat"]),
        helper.make_node("Gemm", ["flat", "weight"], ["scores"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "colours",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 8, 8])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(weight, "weight")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def main() -> None:
    """Make the folder."""
    folder, kind = Path(sys.argv[1]), sys.argv[2]
    digits = files("keywright") / "data/digits.onnx"
    if kind == "slots":
        kw.compile(str(digits), labels=LABELS[kind]).with_keys_within(KEY_BYTES).save(folder, "digits")
        return
    parameters = kw.Parameters.from_bits(10, Q_BITS, [50, 50, 50], 38, insecure=True)
    plan = kw.BootstrapperPlan(parameters, **ENTRY)
    name = "colours" if kind == "colours" else "digits"
    model = colours() if name == "colours" else digits.read_bytes()
    program = compiler.compile_program(
        model,
        compiler.Target(
            slots=plan.slots,
            levels=plan.output_level,
            output_level=plan.input_level,
            packing="coefficients",
        ),
    )
    Model(name, program, parameters, (), Entry(plan, ENTRY), LABELS[kind]).save(folder)


if __name__ == "__main__":
    main()
