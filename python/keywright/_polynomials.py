"""How deep a polynomial is, for the compiler and the planner. The rest of its schedule is the engine's:
`_core.polynomial_relinearizations`."""


def polynomial_depth(degree: int) -> int:
    """Levels that the evaluation of a polynomial consumes: ceil(log2(degree + 1))."""
    return degree.bit_length()
