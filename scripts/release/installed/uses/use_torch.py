"""`keywright[torch]`: a module is exported and compiled."""

import numpy as np
import torch
from keywright import compiler
from keywright.runtime import run_clear

torch.manual_seed(1)
module = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Dropout(), torch.nn.Linear(4, 3))
samples = np.random.default_rng(11).normal(size=(8, 5)).astype(np.float32)
program = compiler.compile_program(compiler.to_onnx(module, samples), compiler.Target(slots=16, levels=2))
expected = module.eval()(torch.as_tensor(samples)).detach().numpy()
assert np.abs(run_clear(program, samples) - expected).max() < 2**-16
print("a module of PyTorch gives the same values")
