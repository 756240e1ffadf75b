"""rtl/client/gaussian_pkg.sv: the cumulative table of the errors, made by vectors/gaussian.py."""

from output import definition, finish

TEXT = """\
// Made by hardware/generate/gaussian_package.py.
//
// Entry k, bits 63 k to 63 k + 62, is round(2^63 P(|x| <= k)) of the discrete Gaussian of deviation
// 3.19, as in crates/ring/src/randomness/gaussian.rs.
package gaussian_pkg;
  localparam int unsigned Bound = {bound};
  localparam logic [Bound*63-1:0] Cumulative = {{
{entries}
  }};
endpackage
"""


def main() -> None:
    """Writes or checks the package."""
    table = definition("gaussian").cumulative("3.19", 63)
    entries = ",\n".join(f"    63'd{entry}" for entry in reversed(table))
    finish("rtl/client/gaussian_pkg.sv", TEXT.format(bound=len(table), entries=entries))


if __name__ == "__main__":
    main()
