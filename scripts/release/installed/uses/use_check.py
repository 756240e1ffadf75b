"""`keywright[check]`: a compiled network is compared with onnxruntime."""

from importlib.resources import files

import numpy as np
from keywright import compiler

data = files("keywright") / "data"
model = (data / "digits.onnx").read_bytes()
with (data / "digits_test.npz").open("rb") as file:
    images = np.load(file)["images"][:20]
report = compiler.check(compiler.compile_program(model, compiler.Target(slots=4096, levels=5)), images, model)
assert report.agreement == 1.0
print(f"onnxruntime agrees on {len(images)} images")
