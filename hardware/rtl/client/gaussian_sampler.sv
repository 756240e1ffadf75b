// Discrete Gaussian residues from uniform words, as crates/ring/src/randomness/gaussian.rs defines them: 63
// bits select the magnitude, the lowest one the sign.
//
// Every entry of the table is compared in every cycle: timing and control activity do not depend on the sample.
module gaussian_sampler #(
    parameter logic [59:0] Modulus = 60'd1152921504606584833
) (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic        clear_i,
    input  logic [63:0] word_i,
    input  logic        valid_i,
    output logic        ready_o,
    output logic [59:0] residue_o,
    output logic        valid_o,
    input  logic        ready_i
);
  localparam int unsigned Bound = gaussian_pkg::Bound;

  logic [Bound-1:0] reached, reached_q;
  logic negative_q, compared_q, sign_q, counted_q, moves;
  logic [ 4:0] magnitude, magnitude_q;
  logic [59:0] residue;

  for (genvar k = 0; k < Bound; k++) begin : gen_entry
    assign reached[k] = word_i[63:1] >= gaussian_pkg::Cumulative[63*k+:63];
  end

  always_comb begin
    magnitude = '0;
    for (int unsigned k = 0; k < Bound; k++) magnitude += 5'(reached_q[k]);
    residue = sign_q && magnitude_q != 0 ? Modulus - 60'(magnitude_q) : 60'(magnitude_q);
  end

  // Three stages that move together: comparison, count, residue.
  assign moves   = !valid_o || ready_i;
  assign ready_o = moves;

  always_ff @(posedge clk_i) begin
    if (moves) begin
      reached_q  <= reached;
      negative_q <= word_i[0];
      {magnitude_q, sign_q} <= {magnitude, negative_q};
      residue_o  <= residue;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {compared_q, counted_q, valid_o} <= '0;
    else if (clear_i) {compared_q, counted_q, valid_o} <= '0;
    else if (moves) {compared_q, counted_q, valid_o} <= {valid_i, compared_q, counted_q};
  end
endmodule
