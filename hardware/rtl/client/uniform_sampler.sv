// Uniform residues of a limb from the words of ChaCha8 streams, as crates/ring/src/randomness/expander.rs defines them.
//
// Sixteen blocks are a chunk, read across: position 8 w + k of a chunk is word w of block 2k in its low half and of
// block 2k + 1 in its high half. Two chunks are held: one fills while the other is read. A memory for each parity of
// block and word writes the two words of a beat, and reads the two of a position, at once.
//
// A candidate is compared with the modulus a cycle before it may leave, so no decision of a receiver waits for the
// comparison. One that is not below the modulus is replaced by the same position of attempt 1, 2, ..., from a second
// stream. Its start takes `retry_block_o` and `retry_attempt_o`, and the position's words are selected from the first
// two blocks. The software reduces the candidate of attempt 255, reached with a probability below 2^-255; here attempts
// continue.
module uniform_sampler #(
    parameter int unsigned Bits = 60,
    parameter logic [59:0] Modulus = 60'd1152921504606584833
) (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic        start_i,          // begins at residue 0; the stream of attempt 0 starts at block 0 with it
    input  logic [63:0] word_i,
    input  logic        valid_i,
    output logic        ready_o,
    output logic        retry_start_o,
    output logic [31:0] retry_block_o,
    output logic [ 7:0] retry_attempt_o,
    input  logic [63:0] retry_word_i,
    input  logic        retry_valid_i,
    output logic        retry_ready_o,
    output logic [59:0] residue_o,
    output logic        valid_o,
    input  logic        ready_i
);
  logic [31:0] even_low[128], even_high[128], odd_low[128], odd_high[128];

  logic [7:0] write_q;  // buffer, block, pair of words
  logic [7:0] read_q;  // buffer, position
  logic [1:0] full_q;  // by buffer
  logic [6:0] write_index, read_index;
  logic write, fetch, full, odd_word;
  logic [Bits-1:0] across;

  // Buffer, block / 2, word / 2.
  assign write_index = {write_q[7], write_q[6:4], write_q[2:0]};
  assign read_index = {read_q[7], read_q[2:0], read_q[6:4]};
  assign odd_word = read_q[3];

  assign ready_o = !full_q[write_q[7]];
  assign write = valid_i && ready_o;
  assign full = full_q[read_q[7]];

  always_ff @(posedge clk_i) begin
    if (write && !write_q[3]) begin
      even_low[write_index]  <= word_i[31:0];
      even_high[write_index] <= word_i[63:32];
    end
  end
  always_ff @(posedge clk_i) begin
    if (write && write_q[3]) begin
      odd_low[write_index]  <= word_i[31:0];
      odd_high[write_index] <= word_i[63:32];
    end
  end
  assign across = Bits'(odd_word ? {odd_high[read_index], even_high[read_index]}
                                 : {odd_low[read_index], even_low[read_index]});

  // A candidate, and behind it one that was compared with the modulus, its position, and the search for another.
  logic candidate_q, compared_q, rejected_q, seeking_q;
  logic [Bits-1:0] value_q, residue_q, redrawn;
  logic [31:0] position_q;
  logic [ 7:0] attempt_q;
  logic [ 3:0] taken_q, word;
  logic [31:0] half_q, half;
  logic moves, found;

  assign valid_o = compared_q && !rejected_q;
  assign residue_o = 60'(residue_q);
  assign moves = !compared_q || (valid_o && ready_i);
  assign fetch = full && (!candidate_q || moves);

  assign word = position_q[6:3];
  assign retry_start_o = compared_q && rejected_q && !seeking_q;
  assign retry_block_o = {3'b0, position_q[31:7], position_q[2:0], 1'b0};
  assign retry_attempt_o = attempt_q;
  assign retry_ready_o = seeking_q;
  assign half = word[0] ? retry_word_i[63:32] : retry_word_i[31:0];
  assign found = retry_ready_o && retry_valid_i && taken_q == {1'b1, word[3:1]};
  assign redrawn = found ? Bits'({half, half_q}) : value_q;

  always_ff @(posedge clk_i) begin
    if (fetch) value_q <= across;
    if (found || moves) {residue_q, rejected_q} <= {redrawn, 60'(redrawn) >= Modulus};
    if (retry_ready_o && retry_valid_i && taken_q == {1'b0, word[3:1]}) half_q <= half;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      full_q <= '0;
      {write_q, read_q, candidate_q, compared_q, seeking_q, attempt_q, position_q, taken_q} <= '0;
    end else if (start_i) begin
      full_q <= '0;
      attempt_q <= 8'd1;
      {write_q, read_q, candidate_q, compared_q, seeking_q, position_q, taken_q} <= '0;
    end else begin
      if (write) write_q <= write_q + 1;
      if (write && write_q[6:0] == '1) full_q[write_q[7]] <= 1'b1;
      if (fetch) begin
        read_q <= read_q + 1;
        if (read_q[6:0] == '1) full_q[read_q[7]] <= 1'b0;
      end
      candidate_q <= fetch || (candidate_q && !moves);
      if (moves) {compared_q, attempt_q} <= {candidate_q, 8'd1};
      if (valid_o && ready_i) position_q <= position_q + 1;
      if (retry_start_o) {seeking_q, taken_q} <= {1'b1, 4'd0};
      if (retry_ready_o && retry_valid_i) taken_q <= taken_q + 1;
      if (found) begin
        seeking_q <= 1'b0;
        attempt_q <= attempt_q + 1;
      end
    end
  end

`ifndef SYNTHESIS
  // Registers may start with any bits, so nothing holds before a reset.
  bit reset_seen;
  initial reset_seen = 1'b0;
  always @(posedge clk_i) if (!rst_ni) reset_seen <= 1'b1;
  a_residue_below_modulus :
  assert property (@(posedge clk_i) disable iff (!rst_ni || !reset_seen) valid_o |-> residue_o < Modulus);
  c_retry :
  cover property (@(posedge clk_i) found);
`endif
endmodule
