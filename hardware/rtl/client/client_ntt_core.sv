// One layer's work on two lines of four coefficients: four butterflies, one line pair per cycle, latency 11 cycles.
//
// At distances of four and more, words of the low line pair with those of the high one; distances 2 and 1 lie within a
// line. `distance_i` is log2 of the distance, at most 2, which stands for all larger ones.
module client_ntt_core (
    input  logic             clk_i,
    input  logic             rst_ni,
    input  logic             inverse_i,
    input  logic [1:0]       distance_i,
    input  logic [3:0][59:0] low_i,
    input  logic [3:0][59:0] high_i,
    input  logic [3:0][59:0] factor_i,    // by butterfly, one cycle after the lines
    output logic [3:0][59:0] low_o,
    output logic [3:0][59:0] high_o
);
  logic [3:0][59:0] a, b, a_q, b_q, x, y;
  logic [1:0] distance_out;

  always_comb begin
    unique case (distance_i)
      2'd0: begin
        a = {high_i[2], high_i[0], low_i[2], low_i[0]};
        b = {high_i[3], high_i[1], low_i[3], low_i[1]};
      end
      2'd1: begin
        a = {high_i[1:0], low_i[1:0]};
        b = {high_i[3:2], low_i[3:2]};
      end
      default: begin
        a = low_i;
        b = high_i;
      end
    endcase
  end

  // Inverse factors come negated (their exponents count from 2^16, and psi^(2^16) = -1): exchanged operands negate the
  // difference too.
  always_ff @(posedge clk_i) begin
    a_q <= inverse_i ? b : a;
    b_q <= inverse_i ? a : b;
  end

  for (genvar i = 0; i < 4; i++) begin : gen_butterfly
    butterfly #(
        .FoldWidth(client_pkg::FoldWidth)
    ) u_butterfly (
        .clk_i, .rst_ni, .en_i(1'b1), .inverse_i, .sel_i(1'b0),
        .a_i(a_q[i]), .b_i(b_q[i]), .w_i(factor_i[i]), .x_o(x[i]), .y_o(y[i])
    );
  end
  delay_line #(
      .Width(2), .Depth(10)
  ) u_distance (
      .clk_i, .rst_ni, .en_i(1'b1), .d_i(distance_i), .q_o(distance_out)
  );

  always_ff @(posedge clk_i) begin
    unique case (distance_out)
      2'd0: begin
        low_o  <= {y[1], x[1], y[0], x[0]};
        high_o <= {y[3], x[3], y[2], x[2]};
      end
      2'd1: begin
        low_o  <= {y[1:0], x[1:0]};
        high_o <= {y[3:2], x[3:2]};
      end
      default: begin
        low_o  <= x;
        high_o <= y;
      end
    endcase
  end
endmodule
