"""rtl/client/client_twiddle_rom.sv: the factors of all powers of the root of unity, one product each.

For N = 2^16; smaller degrees use the same root: the one of degree N is psi^(2^16 / N), since both are powers
of the first x whose (q-1)/2-th power is -1.
"""

from output import definition, finish

Q0 = (1 << 60) - (1 << 18) + 1
LOG_N = 16
LOW_BITS = 7
N = 1 << LOG_N

TEXT = """\
// Made by hardware/generate/twiddle_rom.py.
//
// Powers of psi, the root of unity of degree 2^16 modulo 2^60 - 2^18 + 1. With an exponent of 16 bits
// cut in two, high_o = psi^(2^7 high), and low_o holds psi^(low + j 2^14), j = 0, 2, 1, 3 from the lowest on:
// their products are the twiddle factors of four neighbouring groups of the last layer. Valid a cycle later.
module client_twiddle_rom (
    input  logic             clk_i,
    input  logic [8:0]       high_i,
    input  logic [6:0]       low_i,
    output logic [59:0]      high_o,
    output logic [3:0][59:0] low_o
);
  logic [ 59:0] high;
  logic [239:0] low;

  always_comb begin
    case (high_i)
{high}
    endcase
  end

  always_comb begin
    case (low_i)
{low}
    endcase
  end

  always_ff @(posedge clk_i) begin
    high_o <= high;
    low_o  <= low;
  end
endmodule
"""


def cases(width: int, selector: int, name: str, values: list[int]) -> str:
    """One line per value; the last one is the default."""
    labels = [f"{selector}'d{i}" for i in range(len(values) - 1)] + ["default"]
    return "\n".join(
        f"      {label}: {name} = {width}'h{value:0{width // 4}x};"
        for label, value in zip(labels, values, strict=True)
    )


def main() -> None:
    """Writes or checks the module."""
    psi = definition("ntt").primitive_root(LOG_N, Q0)
    high = [pow(psi, i << LOW_BITS, Q0) for i in range(N >> LOW_BITS)]
    low = [
        sum(pow(psi, i + j * N // 4, Q0) << 60 * slot for slot, j in enumerate((0, 2, 1, 3)))
        for i in range(1 << LOW_BITS)
    ]
    text = TEXT.format(high=cases(60, 9, "high", high), low=cases(240, 7, "low", low))
    finish("rtl/client/client_twiddle_rom.sv", text)


if __name__ == "__main__":
    main()
