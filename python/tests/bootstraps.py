"""Bootstraps of small rings: few factors, and polynomials that are precise enough to see every fault."""

from typing import Any

DEGREE_62: dict[str, Any] = {
    "slots_to_coeffs": 2,
    "coeffs_to_slots": 2,
    "log_ratio": 5,
    "cosine_degree": 62,
    "double_angles": 1,
    "arcsine_degree": 7,
}
"""For ternary secrets."""

DEGREE_30 = DEGREE_62 | {"log_ratio": 6, "cosine_degree": 30, "double_angles": 3, "arcsine_degree": 5}
"""Of fewer levels."""
