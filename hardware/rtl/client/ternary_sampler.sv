// Uniform residues of {-1, 0, 1} from uniform words: floor(3 word / 2^64) - 1, as
// crates/ring/src/randomness/ternary.rs defines them.
module ternary_sampler #(
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
  logic [65:0] triple;
  logic        moves;

  logic unused;
  assign unused  = ^triple[63:0];
  assign triple  = {2'b0, word_i} + {1'b0, word_i, 1'b0};
  assign moves   = !valid_o || ready_i;
  assign ready_o = moves;

  always_ff @(posedge clk_i) begin
    if (moves) begin
      unique case (triple[65:64])
        2'd0: residue_o <= Modulus - 60'd1;
        2'd1: residue_o <= 60'd0;
        default: residue_o <= 60'd1;
      endcase
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) valid_o <= 1'b0;
    else if (clear_i) valid_o <= 1'b0;
    else if (moves) valid_o <= valid_i;
  end
endmodule
