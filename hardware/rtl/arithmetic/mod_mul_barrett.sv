// Product modulo any modulus between 2^(Width - 1) and 2^Width: c_o = a_i b_i mod modulus_i, by Barrett's method.
//
// ratio_i is floor(2^(2 Width) / modulus_i), Width + 1 bits. The quotient estimate is exact or at most two too small,
// so two conditional subtractions complete the reduction. Three multipliers. Latency 8 enabled cycles, one product per
// cycle; modulus_i and ratio_i belong to the operands of their cycle. See doc/blocks.md.
module mod_mul_barrett #(
    parameter int unsigned Width = 60
) (
    input  logic             clk_i,
    input  logic             en_i,
    input  logic [Width-1:0] modulus_i,
    input  logic [  Width:0] ratio_i,
    input  logic [Width-1:0] a_i,
    input  logic [Width-1:0] b_i,
    output logic [Width-1:0] c_o
);
  localparam int unsigned Wide = 2 * Width;

  logic [Width-1:0] a1_q, b1_q;
  logic [Wide-1:0] product2_q, product3_q;
  logic [Wide+1:0] estimate4_q;
  logic [Width:0] quotient5_q;
  // The remainder estimate is below 3 q < 2^(Width + 2): the upper bits of product and quotient cancel.
  logic [Width+1:0] low4_q, low5_q, low6_q, multiple6_q, remainder7_q;
  logic [Width-1:0] modulus1_q, modulus2_q, modulus3_q, modulus4_q, modulus5_q, modulus6_q, modulus7_q;
  logic [Width:0] ratio1_q, ratio2_q, ratio3_q;
  logic [Width+2:0] minus_one, minus_two;

  assign minus_one = {1'b0, remainder7_q} - {3'b0, modulus7_q};
  assign minus_two = {1'b0, remainder7_q} - {2'b0, modulus7_q, 1'b0};

  always_ff @(posedge clk_i) begin
    if (en_i) begin
      {a1_q, b1_q, modulus1_q, ratio1_q} <= {a_i, b_i, modulus_i, ratio_i};
      product2_q <= Wide'(a1_q) * Wide'(b1_q);
      product3_q <= product2_q;
      estimate4_q <= (Wide + 2)'(product3_q[Wide-1:Width-1]) * (Wide + 2)'(ratio3_q);
      low4_q <= product3_q[Width+1:0];
      quotient5_q <= estimate4_q[Wide+1:Width+1];
      low5_q <= low4_q;
      multiple6_q <= (Width + 2)'(quotient5_q) * (Width + 2)'(modulus5_q);
      low6_q <= low5_q;
      remainder7_q <= low6_q - multiple6_q;
      if (!minus_two[Width+2]) c_o <= minus_two[Width-1:0];
      else if (!minus_one[Width+2]) c_o <= minus_one[Width-1:0];
      else c_o <= remainder7_q[Width-1:0];
      {modulus2_q, modulus3_q, modulus4_q, modulus5_q} <= {modulus1_q, modulus2_q, modulus3_q, modulus4_q};
      {modulus6_q, modulus7_q} <= {modulus5_q, modulus6_q};
      {ratio2_q, ratio3_q} <= {ratio1_q, ratio2_q};
    end
  end
endmodule
