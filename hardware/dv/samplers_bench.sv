// The three samplers on ChaCha streams of their own, for any modulus. They are connected as in client_core, which has
// more rounds in a ring and takes longer to compile.
module samplers_bench #(
    parameter int unsigned Bits = 60,
    parameter logic [59:0] Modulus = 60'd1152921504606584833
) (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         start_i,
    input  logic [255:0] key_i,
    input  logic [ 31:0] block_i,
    input  logic [ 95:0] nonce_i,
    input  logic [  2:0] ready_i,
    output logic [  2:0] valid_o,
    output logic [ 59:0] ternary_o,
    output logic [ 59:0] gaussian_o,
    output logic [ 59:0] uniform_o
);
  logic [63:0] word[4];
  logic [3:0] valid, ready, start;
  logic        retry_start;
  logic [31:0] retry_block;
  logic [ 7:0] retry_attempt;

  assign start = {retry_start, {3{start_i}}};
  for (genvar k = 0; k < 4; k++) begin : gen_stream
    chacha_stream #(
        .Rounds(1)
    ) u_stream (
        .clk_i, .rst_ni, .key_i,
        .nonce_i(k == 3 ? nonce_i | {8'b0, retry_attempt, 80'b0} : k == 2 ? nonce_i : '0),
        .block_i(k == 3 ? retry_block : k == 2 ? '0 : block_i),
        .long_i(k < 2), .start_i(start[k]), .word_o(word[k]), .valid_o(valid[k]), .ready_i(ready[k])
    );
  end
  ternary_sampler #(.Modulus(Modulus)) u_ternary (
      .clk_i, .rst_ni, .clear_i(start_i), .word_i(word[0]), .valid_i(valid[0]), .ready_o(ready[0]),
      .residue_o(ternary_o), .valid_o(valid_o[0]), .ready_i(ready_i[0])
  );
  gaussian_sampler #(.Modulus(Modulus)) u_gaussian (
      .clk_i, .rst_ni, .clear_i(start_i), .word_i(word[1]), .valid_i(valid[1]), .ready_o(ready[1]),
      .residue_o(gaussian_o), .valid_o(valid_o[1]), .ready_i(ready_i[1])
  );
  uniform_sampler #(.Bits(Bits), .Modulus(Modulus)) u_uniform (
      .clk_i, .rst_ni, .start_i, .word_i(word[2]), .valid_i(valid[2]), .ready_o(ready[2]),
      .retry_start_o(retry_start), .retry_block_o(retry_block), .retry_attempt_o(retry_attempt),
      .retry_word_i(word[3]), .retry_valid_i(valid[3]), .retry_ready_o(ready[3]),
      .residue_o(uniform_o), .valid_o(valid_o[2]), .ready_i(ready_i[2])
  );
endmodule
