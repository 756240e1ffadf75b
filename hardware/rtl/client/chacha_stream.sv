// 64-bit words of consecutive ChaCha blocks, with 8 or 20 rounds.
//
// `start_i` takes block number and rounds and discards blocks in progress. From then on words come in order, low half
// first, until the next start. `key_i` and `nonce_i` (words 13..15 of the state) must stay constant meanwhile.
//
// A round is four stages of one addition; one more stage chooses between a block that comes back and a new one. A block
// passes through the ring of stages `rounds / Rounds` times, and the ring holds as many blocks as stages. A block
// enters only if the FIFO will have room for it, so the ring never stalls: in the steady state there is a block every
// `rounds / Rounds` cycles, 8 words each. Words leave from a register.
//
// All rounds work on columns: between two of them the rows turn, so that diagonals become columns or columns again.
module chacha_stream #(
    parameter int unsigned Rounds = 4  // in the ring: 1, 2 or 4
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
  // Blocks under way or waiting: those of 20 rounds, 85 cycles in a ring of four, during which eleven are read.
  localparam int unsigned Depth = 16;
  localparam int unsigned PointerWidth = $clog2(Depth);
  localparam int unsigned CountWidth = $clog2(Depth + 1);
  localparam logic [127:0] Constants = {32'h6b206574, 32'h79622d32, 32'h3320646e, 32'h61707865};

  localparam int unsigned Stages = 4 * Rounds + 1;

  // A fourth of a quarter round: one addition, one sum modulo 2 and one rotation.
  function automatic logic [127:0] quarter_step(input logic [127:0] x, input int unsigned step);
    logic [31:0] a, b, c, d;
    a = x[31:0];
    b = x[63:32];
    c = x[95:64];
    d = x[127:96];
    if (step % 2 == 0) begin
      a = a + b;
      d = d ^ a;
      d = step == 0 ? {d[15:0], d[31:16]} : {d[23:0], d[31:24]};
    end else begin
      c = c + d;
      b = b ^ c;
      b = step == 1 ? {b[19:0], b[31:20]} : {b[24:0], b[31:25]};
    end
    quarter_step = {d, c, b, a};
  endfunction

  // A stage, on all columns.
  function automatic logic [511:0] step_of(input logic [511:0] s, input int unsigned step);
    logic [127:0] x;
    step_of = s;
    for (int unsigned i = 0; i < 4; i++) begin
      x = quarter_step({s[32*(12+i)+:32], s[32*(8+i)+:32], s[32*(4+i)+:32], s[32*i+:32]}, step);
      for (int unsigned row = 0; row < 4; row++) step_of[32*(4*row+i)+:32] = x[32*row+:32];
    end
  endfunction

  // Row r turns by r words: diagonals become columns, or again what they were.
  function automatic logic [511:0] turned(input logic [511:0] s, input logic again);
    for (int unsigned row = 0; row < 4; row++) begin
      for (int unsigned i = 0; i < 4; i++) begin
        turned[32*(4*row+i)+:32] = again ? s[32*(4*row+(i+4-row)%4)+:32] : s[32*(4*row+(i+row)%4)+:32];
      end
    end
  endfunction

  logic [511:0] state_q[Stages], state_in[Stages];
  logic [31:0] number_q[Stages], number_in[Stages];
  logic [4:0] pass_q[Stages], pass_in[Stages];
  logic valid_q[Stages], valid_in[Stages];

  logic running_q;
  logic [31:0] next_q;
  // Free places in the FIFO, those of blocks under way already taken. A place is counted as free a cycle after its
  // block leaves, because `popped` is the end of a long path.
  logic [CountWidth-1:0] credits_q;
  logic [4:0] last_pass_q;
  logic leaves_q, returns_q, enters, back, take, popped, popped_q;

  // A single round alternates between columns and diagonals; otherwise the ring ends with diagonals, as a block does.
  assign back   = Rounds > 1 || pass_q[Stages-1][0];
  assign enters = running_q && !returns_q && credits_q != 0;

  always_comb begin
    for (int unsigned k = 1; k < Stages; k++) begin
      state_in[k]  = k > 1 && k % 4 == 1 ? turned(state_q[k-1], k / 4 % 2 == 0) : state_q[k-1];
      number_in[k] = number_q[k-1];
      pass_in[k]   = pass_q[k-1];
      valid_in[k]  = valid_q[k-1];
    end
    state_in[0]  = returns_q ? turned(state_q[Stages-1], back) : {nonce_i, next_q, key_i, Constants};
    number_in[0] = returns_q ? number_q[Stages-1] : next_q;
    pass_in[0]   = returns_q ? pass_q[Stages-1] + 5'd1 : 5'd0;
    valid_in[0]  = returns_q || enters;
  end

  for (genvar k = 0; k < Stages; k++) begin : gen_stage
    always_ff @(posedge clk_i) begin
      state_q[k]  <= k == 0 ? state_in[k] : step_of(state_in[k], (k + 3) % 4);
      number_q[k] <= number_in[k];
      pass_q[k]   <= pass_in[k];
    end
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) valid_q[k] <= 1'b0;
      else valid_q[k] <= valid_in[k] && !start_i;
    end
  end
  // Where the block of the last stage goes.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {leaves_q, returns_q} <= '0;
    end else begin
      leaves_q  <= valid_in[Stages-1] && !start_i && pass_in[Stages-1] == last_pass_q;
      returns_q <= valid_in[Stages-1] && !start_i && pass_in[Stages-1] != last_pass_q;
    end
  end

  // The input is added in a separate stage before the FIFO.
  logic [511:0] last, sum_q;
  logic         sum_valid_q;
  assign last = turned(state_q[Stages-1], 1'b1);
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < 16; i++) begin
      sum_q[32*i+:32] <= last[32*i+:32] + 32'({nonce_i, number_q[Stages-1], key_i, Constants} >> 32 * i);
    end
  end

  logic [511:0] fifo[Depth];
  logic [PointerWidth-1:0] write_q, read_q;
  logic [2:0] word_q;
  logic [CountWidth-1:0] filled_q;
  logic [511:0] head;

  always_ff @(posedge clk_i) if (sum_valid_q) fifo[write_q] <= sum_q;
  assign head   = fifo[read_q];
  assign take   = filled_q != 0 && (!valid_o || ready_i);
  assign popped = take && word_q == 3'd7;
  always_ff @(posedge clk_i) if (take) word_o <= head[64*word_q+:64];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      running_q   <= 1'b0;
      last_pass_q <= '0;
      next_q      <= '0;
      credits_q   <= CountWidth'(Depth);
      {sum_valid_q, valid_o, write_q, read_q, word_q, filled_q, popped_q} <= '0;
    end else if (start_i) begin
      running_q   <= 1'b1;
      last_pass_q <= 5'((long_i ? 20 : 8) / Rounds - 1);
      next_q      <= block_i;
      credits_q   <= CountWidth'(Depth);
      {sum_valid_q, valid_o, write_q, read_q, word_q, filled_q, popped_q} <= '0;
    end else begin
      if (enters) next_q <= next_q + 1;
      popped_q    <= popped;
      credits_q   <= credits_q - CountWidth'(enters) + CountWidth'(popped_q);
      sum_valid_q <= leaves_q;
      if (sum_valid_q) write_q <= write_q + 1;
      if (take) word_q <= word_q + 1;
      if (popped) read_q <= read_q + 1;
      filled_q <= filled_q + CountWidth'(sum_valid_q) - CountWidth'(popped);
      if (!valid_o || ready_i) valid_o <= take;
    end
  end

`ifndef SYNTHESIS
  // Registers may start with any bits, so nothing holds before a reset.
  bit reset_seen;
  initial reset_seen = 1'b0;
  always @(posedge clk_i) if (!rst_ni) reset_seen <= 1'b1;
  fifo_has_room :
  assert property (@(posedge clk_i) disable iff (!rst_ni || !reset_seen) sum_valid_q |-> filled_q < CountWidth'(Depth));
`endif
endmodule
