"""From a thin client's integers to its answer at full size: `python -m studies.thin_clients.path`.

The client encrypts with its public key and with its secret; the server raises the modulus, squares in slots,
moves the squares back to coefficients and drops to `q_0`; the client decrypts them. Every number is compared
with its square, within the bound that the answer carries. One thread, processor seconds; a JSON object each.
The predicted bits are of what the bootstrapping adds to the numbers, without encryption and squares.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import keywright as kw
import numpy as np
from harness.measurement import machine
from harness.measurement.clock import timed

PRESET = "N16_QP1732_L9_S45"
MOST_BITS = 30
"""After the point; fewer where the scale has fewer."""


def paths(name: str, rounds: int) -> list[dict[str, Any]]:
    """Round trips of a preset, in turns of the two forms.

    Raises:
        SystemExit: a number is further off than its bound.
    """
    plan = kw.BootstrapperPlan.preset(name)
    parameters, slots = plan.parameters, plan.slots
    predicted = plan.predicted_bits()
    if predicted is None:
        raise SystemExit(f"{name} ends with slots_to_coeffs; take a preset that begins with it")
    bits = min(MOST_BITS, int(np.log2(plan.coefficients_scale)))
    unit = 2.0**-bits
    thin = plan.client_parameters(bits)
    owner = kw.thin.Client(thin)
    camera = kw.thin.Encryptor(owner.public_key(), thin)
    product = kw.KeySpec.relinearization(parameters, plan.output_level)
    secret = kw.SecretKey.from_bytes(owner.secret_bytes(), parameters)
    specs = list(dict.fromkeys([*plan.required_keys, product]))
    keys = kw.KeyGenerator(secret).evaluation_keys(relinearization=False, specs=specs)
    del secret
    bootstrapper, evaluator = kw.Bootstrapper(plan), kw.Evaluator(parameters, keys)
    rng, paths = np.random.default_rng(1), []
    for turn in range(rounds):
        for form, sender in (("public key", camera), ("secret key", owner)):
            numbers = np.rint(rng.uniform(-0.5, 0.5, 2 * slots) / unit).astype(np.int64)
            upload, encrypting = timed(sender.encrypt, numbers)
            sent = thin.read_upload(upload, parameters)
            raised, raising = timed(bootstrapper.bootstrap_coefficients, evaluator, sent)
            squared = evaluator.square(raised)
            low, lowering = timed(bootstrapper.slots_to_coeffs, evaluator, squared)
            answer = thin.write_answer(low)
            read, decrypting = timed(owner.decrypt, answer)
            values = (numbers[:slots] + 1j * numbers[slots:]) * unit
            expected = np.concatenate([(values**2).real, (values**2).imag])
            errors = np.abs(read * unit - expected)
            if errors.max() > low.error_bound + unit:
                raise SystemExit(f"{name}: off by {errors.max()}, bound {low.error_bound}")
            paths.append(
                {
                    "preset": name,
                    "form": form,
                    "round": turn,
                    "numbers": len(numbers),
                    "fraction_bits": bits,
                    "bytes_up": len(upload),
                    "bytes_down": len(answer),
                    "encrypt_cpu_s": encrypting.cpu,
                    "decrypt_cpu_s": decrypting.cpu,
                    "bootstrap_cpu_s": raising.cpu,
                    "slots_to_coeffs_cpu_s": lowering.cpu,
                    "levels": plan.levels_left,
                    "worst_bits": float(-np.log2(errors.max())),
                    "mean_bits": float(-np.log2(errors.mean())),
                    "predicted_worst_bits": predicted[1],
                    "predicted_mean_bits": predicted[0],
                    "bound": low.error_bound,
                    "key_bytes": sum(spec.bytes for spec in specs),
                }
            )
    return paths


def main() -> int:
    """Measure and print. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m studies.thin_clients.path", description=__doc__)
    parser.add_argument("--preset", nargs="+", default=[PRESET], help=f"of complex slots (default: {PRESET})")
    parser.add_argument("--rounds", type=int, default=3, help="of both forms (default: 3)")
    options = parser.parse_args()
    kw.set_threads(1)
    for name in options.preset:
        for line in paths(name, options.rounds):
            print(json.dumps({**line, "commit": machine.commit()}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
