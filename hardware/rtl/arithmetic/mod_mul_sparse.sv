// Product modulo one of a few sparse primes, without multipliers for the reduction: c_o = a_i b_i mod Moduli[sel_i].
//
// 2^Width = c (mod q) with small c, so the upper half of the product is folded onto the lower one by shifts and
// additions, three times; the remainder is below 2 q. Latency 7 enabled cycles, one product per cycle. See
// doc/blocks.md.
module mod_mul_sparse #(
    parameter int unsigned Width = 60,
    parameter int unsigned Count = 1,
    parameter int unsigned SelWidth = 1,
    // c 2^shift is below 2^FoldWidth for every modulus; 3 FoldWidth + 3 < 2 Width.
    parameter int unsigned FoldWidth = 36,
    parameter logic [Count*sparse_moduli_pkg::FormWidth-1:0] Moduli = {Count{sparse_moduli_pkg::Boosted}}
) (
    input  logic                clk_i,
    input  logic                en_i,
    input  logic [SelWidth-1:0] sel_i,
    input  logic [   Width-1:0] a_i,
    input  logic [   Width-1:0] b_i,
    output logic [   Width-1:0] c_o
);
  localparam int unsigned Fold1 = Width + FoldWidth + 1;
  localparam int unsigned Fold2 = 2 * FoldWidth + 3 > Width + 2 ? 2 * FoldWidth + 3 : Width + 2;
  localparam int unsigned Fold3 = Width + 1;

  logic [2*Width-1:0] product2;
  // Words cut at bit Width, where the next fold continues.
  logic [Width-1:0] low3_q, low4_q, low5_q, high3_q;
  logic [Fold1-Width-1:0] high4_q;
  logic [Fold2-Width-1:0] high5_q;
  logic [  Fold3-1:0] folded6_q;
  logic [SelWidth-1:0] sel1_q, sel2_q, sel3_q, sel4_q, sel5_q, sel6_q;
  logic [Fold1-1:0] folded4;
  logic [Fold2-1:0] folded5;
  logic [Fold3-1:0] folded6;
  logic [Width:0] reduced7;

  function automatic logic [Width-1:0] modulus_of(input logic [SelWidth-1:0] sel);
    modulus_of = '0;
    for (int unsigned i = 0; i < Count; i++) begin
      if (Count == 1 || sel == SelWidth'(i)) begin
        modulus_of = Width'(sparse_moduli_pkg::modulus(Moduli[19*i+:19], Width));
      end
    end
  endfunction

  sparse_fold #(
      .Width(Width), .HighWidth(Width), .SumWidth(Fold1), .Count(Count), .SelWidth(SelWidth), .Moduli(Moduli)
  ) u_fold4 (
      .sel_i(sel3_q), .high_i(high3_q), .low_i(low3_q), .r_o(folded4)
  );
  sparse_fold #(
      .Width(Width), .HighWidth(Fold1 - Width), .SumWidth(Fold2), .Count(Count), .SelWidth(SelWidth), .Moduli(Moduli)
  ) u_fold5 (
      .sel_i(sel4_q), .high_i(high4_q), .low_i(low4_q), .r_o(folded5)
  );
  sparse_fold #(
      .Width(Width), .HighWidth(Fold2 - Width), .SumWidth(Fold3), .Count(Count), .SelWidth(SelWidth), .Moduli(Moduli)
  ) u_fold6 (
      .sel_i(sel5_q), .high_i(high5_q), .low_i(low5_q), .r_o(folded6)
  );
  tiled_mul #(
      .Width(Width)
  ) u_product (
      .clk_i, .en_i, .a_i, .b_i, .p_o(product2)
  );
  assign reduced7 = folded6_q - {1'b0, modulus_of(sel6_q)};

  always_ff @(posedge clk_i) begin
    if (en_i) begin
      sel1_q <= sel_i;
      {high3_q, low3_q} <= product2;
      {high4_q, low4_q} <= folded4;
      {high5_q, low5_q} <= folded5;
      folded6_q <= folded6;
      c_o <= reduced7[Width] ? folded6_q[Width-1:0] : reduced7[Width-1:0];
      {sel2_q, sel3_q, sel4_q, sel5_q, sel6_q} <= {sel1_q, sel2_q, sel3_q, sel4_q, sel5_q};
    end
  end
endmodule
