// Product modulo any modulus between 2^(Width - 1) and 2^Width: c_o = a_i b_i mod modulus_i, by Barrett's method.
//
// ratio_i is floor(2^(2 Width) / modulus_i), Width + 1 bits. The quotient estimate is exact or at most two too small,
// so two conditional subtractions complete the reduction. Three multipliers. Latency 11 enabled cycles, one product per
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

  logic [Wide-1:0] product2, product3_q;
  logic [Wide+1:0] estimate5;
  logic [Width:0] quotient6_q;
  // The remainder estimate is below 3 q < 2^(Width + 2): the upper bits of product and quotient cancel.
  logic [Wide+3:0] multiple8;
  logic [Width+1:0] multiple9_q, remainder10_q;
  logic [5:0][Width+1:0] low_q;  // of the product, by stage from 4 on
  logic [9:0][Width-1:0] modulus_q;  // by stage from 1 on
  logic [2:0][Width:0] ratio_q;
  logic [Width+2:0] minus_one, minus_two;

  tiled_mul #(
      .Width(Width)
  ) u_product (
      .clk_i, .en_i, .a_i, .b_i, .p_o(product2)
  );
  tiled_mul #(
      .Width(Width + 1)
  ) u_estimate (
      .clk_i, .en_i, .a_i(product3_q[Wide-1:Width-1]), .b_i(ratio_q[2]), .p_o(estimate5)
  );
  tiled_mul #(
      .Width(Width + 2)
  ) u_multiple (
      .clk_i, .en_i, .a_i({1'b0, quotient6_q}), .b_i({2'b0, modulus_q[5]}), .p_o(multiple8)
  );
  assign minus_one = {1'b0, remainder10_q} - {3'b0, modulus_q[9]};
  assign minus_two = {1'b0, remainder10_q} - {2'b0, modulus_q[9], 1'b0};

  always_ff @(posedge clk_i) begin
    if (en_i) begin
      modulus_q <= {modulus_q[8:0], modulus_i};
      ratio_q <= {ratio_q[1:0], ratio_i};
      product3_q <= product2;
      low_q <= {low_q[4:0], product3_q[Width+1:0]};
      quotient6_q <= estimate5[Wide+1:Width+1];
      multiple9_q <= multiple8[Width+1:0];
      remainder10_q <= low_q[5] - multiple9_q;
      if (!minus_two[Width+2]) c_o <= minus_two[Width-1:0];
      else if (!minus_one[Width+2]) c_o <= minus_one[Width-1:0];
      else c_o <= remainder10_q[Width-1:0];
    end
  end

  logic unused;
  assign unused = ^{estimate5[Width:0], multiple8[Wide+3:Width+2]};
endmodule
