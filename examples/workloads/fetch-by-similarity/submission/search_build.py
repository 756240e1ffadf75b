"""Choose the polynomials of the step, and write the harness's programs into the folder build."""

import numpy as np
from programs import BUILD, write_programs
from search_steps import STEPS
from similarity import Step


def main() -> None:
    """Write both."""
    write_programs(STEPS)
    step = Step.design()
    np.savez(BUILD / "step.npz", first=step.first, second=step.second)


if __name__ == "__main__":
    main()
