// Product modulo any modulus between 2^(Width - 1) and 2^Width: c_o = a_i b_i mod modulus_i, by Barrett's method.
//
// ratio_i is floor(2^(2 Width) / modulus_i), Width + 1 bits. The quotient estimate is exact or at most two too small,
// so two conditional subtractions complete the reduction. Three multipliers. Latency 9 enabled cycles, one product per
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
  logic [Wide-1:0] product2, product3_q;
  logic [Wide+1:0] estimate4;
  logic [Width:0] quotient5_q;
  // The remainder estimate is below 3 q < 2^(Width + 2): the upper bits of product and quotient cancel.
  logic [Wide+3:0] multiple6;
  logic [Width+1:0] low4_q, low5_q, low6_q, low7_q, multiple7_q, remainder8_q;
  logic [7:0][Width-1:0] modulus_q;  // by stage, from 1 on
  logic [2:0][Width:0] ratio_q;
  logic [Width+2:0] minus_one, minus_two;

  tiled_mul #(
      .Width(Width)
  ) u_product (
      .clk_i, .en_i, .a_i(a1_q), .b_i(b1_q), .p_o(product2)
  );
  tiled_mul #(
      .Width(Width + 1)
  ) u_estimate (
      .clk_i, .en_i, .a_i(product3_q[Wide-1:Width-1]), .b_i(ratio_q[2]), .p_o(estimate4)
  );
  tiled_mul #(
      .Width(Width + 2)
  ) u_multiple (
      .clk_i, .en_i, .a_i({1'b0, quotient5_q}), .b_i({2'b0, modulus_q[4]}), .p_o(multiple6)
  );
  assign minus_one = {1'b0, remainder8_q} - {3'b0, modulus_q[7]};
  assign minus_two = {1'b0, remainder8_q} - {2'b0, modulus_q[7], 1'b0};

  always_ff @(posedge clk_i) begin
    if (en_i) begin
      {a1_q, b1_q} <= {a_i, b_i};
      modulus_q <= {modulus_q[6:0], modulus_i};
      ratio_q <= {ratio_q[1:0], ratio_i};
      product3_q <= product2;
      {low4_q, low5_q} <= {product3_q[Width+1:0], low4_q};
      quotient5_q <= estimate4[Wide+1:Width+1];
      {low6_q, low7_q} <= {low5_q, low6_q};
      multiple7_q <= multiple6[Width+1:0];
      remainder8_q <= low7_q - multiple7_q;
      if (!minus_two[Width+2]) c_o <= minus_two[Width-1:0];
      else if (!minus_one[Width+2]) c_o <= minus_one[Width-1:0];
      else c_o <= remainder8_q[Width-1:0];
    end
  end

  logic unused;
  assign unused = ^{estimate4[Width:0], multiple6[Wide+3:Width+2]};
endmodule
