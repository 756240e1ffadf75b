// 64-bit words of consecutive ChaCha blocks, with 8 or 20 rounds.
//
// `start_i` takes block number and rounds and discards blocks in progress. From then on words come in order, low half
// first, until the next start. `key_i` and `nonce_i` (words 13..15 of the state) must stay constant meanwhile.
//
// One round per stage. A block passes through the ring of stages `rounds / Stages` times, and the ring holds as many
// blocks as stages. A block enters only if the FIFO will have room for it, so the ring never stalls: in the steady
// state there is a block every `rounds / Stages` cycles, 8 words each.
module chacha_stream #(
    parameter int unsigned Stages = 4  // 1, 2 or 4
) (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic [255:0] key_i,
    input  logic [ 95:0] nonce_i,
    input  logic [ 31:0] block_i,
    input  logic         long_i,    // 20 rounds instead of 8
    input  logic         start_i,
    output logic [ 63:0] word_o,
    output logic         valid_o,
    input  logic         ready_i
);
  localparam int unsigned Depth = 8;  // blocks under way or waiting
  localparam logic [127:0] Constants = {32'h6b206574, 32'h79622d32, 32'h3320646e, 32'h61707865};

  function automatic logic [127:0] quarter_round(input logic [127:0] x);
    logic [31:0] a, b, c, d;
    a = x[31:0];
    b = x[63:32];
    c = x[95:64];
    d = x[127:96];
    a = a + b;
    d = d ^ a;
    d = {d[15:0], d[31:16]};
    c = c + d;
    b = b ^ c;
    b = {b[19:0], b[31:20]};
    a = a + b;
    d = d ^ a;
    d = {d[23:0], d[31:24]};
    c = c + d;
    b = b ^ c;
    b = {b[24:0], b[31:25]};
    quarter_round = {d, c, b, a};
  endfunction

  // Row r of a diagonal round is rotated by r words before it and back after it; otherwise it is a column round.
  function automatic logic [511:0] any_round(input logic [511:0] s, input logic diagonal);
    logic [511:0] r;
    logic [127:0] x;
    r = s;
    for (int unsigned i = 0; i < 4; i++) begin
      for (int unsigned row = 0; row < 4; row++) begin
        x[32*row+:32] = s[32*(4*row+(diagonal?(i+row)%4 : i))+:32];
      end
      x = quarter_round(x);
      for (int unsigned row = 0; row < 4; row++) begin
        r[32*(4*row+(diagonal?(i+row)%4 : i))+:32] = x[32*row+:32];
      end
    end
    any_round = r;
  endfunction

  logic [511:0] state_q[Stages], state_in[Stages];
  logic [31:0] number_q[Stages], number_in[Stages];
  logic [4:0] pass_q[Stages], pass_in[Stages];
  logic valid_q[Stages], valid_in[Stages];

  logic running_q, long_q;
  logic [31:0] next_q;
  logic [ 3:0] credits_q;  // free places in the FIFO, those of blocks under way already taken
  logic [ 4:0] last_pass;
  logic leaves, returns, enters, popped;

  assign last_pass = 5'((long_q ? 20 : 8) / Stages - 1);
  assign leaves = valid_q[Stages-1] && pass_q[Stages-1] == last_pass;
  assign returns = valid_q[Stages-1] && !leaves;
  assign enters = running_q && !returns && credits_q != 0;

  always_comb begin
    for (int unsigned k = 1; k < Stages; k++) begin
      state_in[k]  = state_q[k-1];
      number_in[k] = number_q[k-1];
      pass_in[k]   = pass_q[k-1];
      valid_in[k]  = valid_q[k-1];
    end
    state_in[0]  = returns ? state_q[Stages-1] : {nonce_i, next_q, key_i, Constants};
    number_in[0] = returns ? number_q[Stages-1] : next_q;
    pass_in[0]   = returns ? pass_q[Stages-1] + 5'd1 : 5'd0;
    valid_in[0]  = returns || enters;
  end

  for (genvar k = 0; k < Stages; k++) begin : gen_stage
    always_ff @(posedge clk_i) begin
      // A single stage alternates between the two kinds of round.
      state_q[k]  <= any_round(state_in[k], Stages == 1 ? pass_in[k][0] : k % 2 == 1);
      number_q[k] <= number_in[k];
      pass_q[k]   <= pass_in[k];
    end
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) valid_q[k] <= 1'b0;
      else valid_q[k] <= valid_in[k] && !start_i;
    end
  end

  // The input is added in a separate stage before the FIFO.
  logic [511:0] sum_q;
  logic         sum_valid_q;
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < 16; i++) begin
      sum_q[32*i+:32] <= state_q[Stages-1][32*i+:32] + 32'({nonce_i, number_q[Stages-1], key_i, Constants} >> 32 * i);
    end
  end

  logic [511:0] fifo[Depth];
  logic [2:0] write_q, read_q, word_q;
  logic [3:0] filled_q;
  logic [511:0] head;

  always_ff @(posedge clk_i) if (sum_valid_q) fifo[write_q] <= sum_q;
  assign head    = fifo[read_q];
  assign word_o  = head[64*word_q+:64];
  assign valid_o = filled_q != 0;
  assign popped  = valid_o && ready_i && word_q == 3'd7;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      running_q   <= 1'b0;
      long_q      <= 1'b0;
      next_q      <= '0;
      credits_q   <= 4'(Depth);
      sum_valid_q <= 1'b0;
      write_q     <= '0;
      read_q      <= '0;
      word_q      <= '0;
      filled_q    <= '0;
    end else if (start_i) begin
      running_q   <= 1'b1;
      long_q      <= long_i;
      next_q      <= block_i;
      credits_q   <= 4'(Depth);
      sum_valid_q <= 1'b0;
      write_q     <= '0;
      read_q      <= '0;
      word_q      <= '0;
      filled_q    <= '0;
    end else begin
      if (enters) next_q <= next_q + 1;
      credits_q   <= credits_q - 4'(enters) + 4'(popped);
      sum_valid_q <= leaves;
      if (sum_valid_q) write_q <= write_q + 1;
      if (valid_o && ready_i) word_q <= word_q + 1;
      if (popped) read_q <= read_q + 1;
      filled_q <= filled_q + 4'(sum_valid_q) - 4'(popped);
    end
  end

`ifndef SYNTHESIS
  fifo_has_room :
  assert property (@(posedge clk_i) disable iff (!rst_ni) sum_valid_q |-> filled_q < 4'(Depth));
`endif
endmodule
