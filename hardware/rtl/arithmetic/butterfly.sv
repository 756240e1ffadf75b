// Unified butterfly on residues of one of a few sparse primes, with one multiplier.
//
//   inverse_i = 0 (Cooley-Tukey):      x_o = a + w b,      y_o = a - w b
//   inverse_i = 1 (Gentleman-Sande):   x_o = (a + b) / 2,  y_o = w (a - b) / 2
//
// The halves make log2(N) inverse layers the exact inverse of as many forward ones, without a scaling by 1/N. Latency 9
// enabled cycles, one butterfly per cycle; inverse_i and sel_i may change every cycle. See doc/blocks.md.
module butterfly #(
    parameter int unsigned Width = 60,
    parameter int unsigned Count = 1,
    parameter int unsigned SelWidth = 1,
    parameter int unsigned FoldWidth = 36,
    parameter logic [Count*sparse_moduli_pkg::FormWidth-1:0] Moduli = {Count{sparse_moduli_pkg::Boosted}}
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  logic                en_i,
    input  logic                inverse_i,
    input  logic [SelWidth-1:0] sel_i,
    input  logic [   Width-1:0] a_i,
    input  logic [   Width-1:0] b_i,
    input  logic [   Width-1:0] w_i,
    output logic [   Width-1:0] x_o,
    output logic [   Width-1:0] y_o
);
  function automatic logic [Width-1:0] modulus(input logic [SelWidth-1:0] sel);
    modulus = '0;
    for (int unsigned i = 0; i < Count; i++) begin
      if (Count == 1 || sel == SelWidth'(i)) begin
        modulus = Width'(sparse_moduli_pkg::modulus(Moduli[19*i+:19], Width));
      end
    end
  endfunction

  // x / 2: a residue scaled by 2^shift is odd if that bit is one.
  function automatic logic [Width-1:0] half(input logic [SelWidth-1:0] sel, input logic [Width-1:0] x);
    logic odd;
    odd = 1'b0;
    for (int unsigned i = 0; i < Count; i++) begin
      if (Count == 1 || sel == SelWidth'(i)) odd = x[Moduli[19*i+:6]];
    end
    half = Width'(({1'b0, x} + (odd ? {1'b0, modulus(sel)} : '0)) >> 1);
  endfunction

  logic [Width-1:0] q1, sum1, difference1, a1_q, factor1_q, w1_q, a8, product8, q8, sum8, difference8;
  logic [SelWidth-1:0] sel1_q, sel8;
  logic inverse1_q, inverse8;

  assign q1 = modulus(sel_i);
  mod_add #(
      .Width(Width)
  ) u_sum1 (
      .modulus_i(q1), .a_i, .b_i, .r_o(sum1)
  );
  mod_add #(
      .Width(Width), .Subtract(1'b1)
  ) u_difference1 (
      .modulus_i(q1), .a_i, .b_i, .r_o(difference1)
  );

  always_ff @(posedge clk_i) begin
    if (en_i) begin
      a1_q <= inverse_i ? sum1 : a_i;
      factor1_q <= inverse_i ? difference1 : b_i;
      {w1_q, sel1_q, inverse1_q} <= {w_i, sel_i, inverse_i};
    end
  end

  mod_mul_sparse #(
      .Width(Width), .Count(Count), .SelWidth(SelWidth), .FoldWidth(FoldWidth), .Moduli(Moduli)
  ) u_multiplier (
      .clk_i, .en_i, .sel_i(sel1_q), .a_i(factor1_q), .b_i(w1_q), .c_o(product8)
  );
  delay_line #(
      .Width(Width + SelWidth + 1), .Depth(7)
  ) u_delay (
      .clk_i, .rst_ni, .en_i, .d_i({a1_q, sel1_q, inverse1_q}), .q_o({a8, sel8, inverse8})
  );

  assign q8 = modulus(sel8);
  mod_add #(
      .Width(Width)
  ) u_sum8 (
      .modulus_i(q8), .a_i(a8), .b_i(product8), .r_o(sum8)
  );
  mod_add #(
      .Width(Width), .Subtract(1'b1)
  ) u_difference8 (
      .modulus_i(q8), .a_i(a8), .b_i(product8), .r_o(difference8)
  );

  always_ff @(posedge clk_i) begin
    if (en_i) begin
      x_o <= inverse8 ? half(sel8, a8) : sum8;
      y_o <= inverse8 ? half(sel8, product8) : difference8;
    end
  end

`ifndef SYNTHESIS
  // Canonical in, canonical out.
  always_ff @(posedge clk_i) begin
    if (rst_ni && en_i) begin
      assert (a8 < q8 && product8 < q8)
      else $error("butterfly: residue not below its modulus");
    end
  end
`endif
endmodule
