"""An owner of the keys of a bootstrap, in a ring of degree 2^10 without security."""

from __future__ import annotations

from dataclasses import dataclass

import keywright as kw
import numpy as np
from numpy.typing import NDArray

ENTROPY = bytes(range(32))
STAGES = ["slots_to_coeffs", "mod_raise", "coeffs_to_slots", "eval_mod"]


# q_0, 2 levels of slots_to_coeffs, 3 to compute on or recombine, 10 of eval_mod, 2 of coeffs_to_slots.
Q_BITS = [50, 40, 40, 45, 45, 50, *[50] * 7, 59, 60, 50, 50, 50]
P_BITS = [50, 50, 50]


@dataclass(frozen=True)
class Bootstrapping:
    """An owner of the keys of a bootstrapping only."""

    plan: kw.BootstrapperPlan
    secret: kw.SecretKey
    generator: kw.KeyGenerator
    keys: kw.EvaluationKeys
    encryptor: kw.Encryptor
    evaluator: kw.Evaluator
    bootstrapper: kw.Bootstrapper

    @property
    def parameters(self) -> kw.Parameters:
        return self.plan.parameters

    def decrypt(self, ciphertext: kw.Ciphertext) -> NDArray[np.complex128]:
        values: NDArray[np.complex128] = kw.Decryptor(self.secret).decrypt_complex(ciphertext)
        return values

    def assert_decrypts(self, ciphertext: kw.Ciphertext, expected: NDArray[np.complex128]) -> None:
        """Check that the decryption is within the derived bound of the expected slots."""
        error = np.abs(self.decrypt(ciphertext) - expected).max()
        assert error <= ciphertext.error_bound, f"{error} above {ciphertext.error_bound}"

    def encrypt(self, values: NDArray[np.complex128], level: int | None = None) -> kw.Ciphertext:
        level = self.plan.input_level if level is None else level
        declared = max(float(np.abs(values).max()), 2**0.5)
        return self.encryptor.encrypt(values, slots=self.plan.slots, level=level, magnitude=declared)

    def fresh(self) -> NDArray[np.complex128]:
        """Return values that the plan can bootstrap."""
        rng = np.random.default_rng(5)
        parts = rng.uniform(-1, 1, (2, self.plan.slots))
        values: NDArray[np.complex128] = parts[0] + 1j * parts[1] * (self.plan.values == "complex")
        return values


def small_parameters() -> kw.Parameters:
    return kw.Parameters.from_bits(10, Q_BITS, P_BITS, 45, insecure=True)


def small_plan(
    parameters: kw.Parameters,
    *,
    slots: int | None = None,
    values: str = "complex",
    order: str = "slots_to_coeffs_first",
    slots_to_coeffs: int = 2,
    coeffs_to_slots: int = 2,
    log_ratio: float = 5,
    cosine_degree: int = 62,
    double_angles: int = 1,
    arcsine_degree: int = 7,
    key_budget: int | str = "fastest",
    stages_apart: bool = True,
    alpha: int | str | None = None,
    key_levels: str = "needed",
    ephemeral_weight: int | None = 32,
    log2_failure: float = -40,
    iterations: int = 1,
    log_precision: int | None = None,
    output_level: int | None = None,
) -> kw.BootstrapperPlan:
    """Return a bootstrapping of those parameters, with the test's changes."""
    return kw.BootstrapperPlan(
        parameters,
        slots=slots,
        values=values,
        order=order,
        slots_to_coeffs=slots_to_coeffs,
        coeffs_to_slots=coeffs_to_slots,
        log_ratio=log_ratio,
        cosine_degree=cosine_degree,
        double_angles=double_angles,
        arcsine_degree=arcsine_degree,
        key_budget=key_budget,
        stages_apart=stages_apart,
        alpha=alpha,
        key_levels=key_levels,
        ephemeral_weight=ephemeral_weight,
        log2_failure=log2_failure,
        iterations=iterations,
        log_precision=log_precision,
        output_level=output_level,
    )


def prepare(slots: int | None = None, values: str = "complex") -> Bootstrapping:
    return own(small_plan(small_parameters(), slots=slots, values=values))


def own(plan: kw.BootstrapperPlan) -> Bootstrapping:
    """Return fresh keys for a plan."""
    parameters = plan.parameters
    secret = kw.SecretKey.generate(parameters, ENTROPY)
    generator = kw.KeyGenerator(secret, ENTROPY)
    keys = generator.evaluation_keys(specs=plan.required_keys, relinearization=False)
    evaluator = kw.Evaluator(parameters, keys)
    encryptor = kw.Encryptor(generator.public_key(), ENTROPY)
    return Bootstrapping(plan, secret, generator, keys, encryptor, evaluator, kw.Bootstrapper(plan))
