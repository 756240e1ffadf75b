// Four twiddle factors per cycle from an exponent of the root of unity of degree 2^16, each a product of two table
// entries: psi^e, psi^(e + 2^15), psi^(e + 2^14), psi^(e + 3 2^14) from the lowest word on. Exponents may come in any
// order. There is no state to initialise or synchronise. Latency 9 cycles, one of them in a register between the tables
// and the multipliers: a block memory's output is slow.
module client_twiddles (
    input  logic             clk_i,
    input  logic [15:0]      exponent_i,
    output logic [3:0][59:0] factor_o
);
  logic [59:0] high, high_q;
  logic [3:0][59:0] low, low_q;

  client_twiddle_rom u_rom (
      .clk_i, .high_i(exponent_i[15:7]), .low_i(exponent_i[6:0]), .high_o(high), .low_o(low)
  );
  always_ff @(posedge clk_i) {high_q, low_q} <= {high, low};
  for (genvar j = 0; j < 4; j++) begin : gen_product
    mod_mul_sparse #(
        .FoldWidth(client_pkg::FoldWidth)
    ) u_product (
        .clk_i, .en_i(1'b1), .sel_i(1'b0), .a_i(high_q), .b_i(low_q[j]), .c_o(factor_o[j])
    );
  end
endmodule
