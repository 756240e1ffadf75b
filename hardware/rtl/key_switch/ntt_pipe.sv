// Negacyclic transforms of polynomials of N = 2^LogN words, forward or inverse, one after another without a gap: a beat
// of 2^LogLanes words every cycle, LogLanes = ceil(LogN / 4), and a polynomial every N / 2^LogLanes cycles. LogN is 8
// or 10 to 16.
//
// Position p of a stream is lane p mod 2^LogLanes of beat p / 2^LogLanes. A forward transform takes coefficient
// reversed(p) (log2(N) bits) at position p and gives evaluation p; an inverse one takes evaluation p and gives
// coefficient reversed(p), with 1/N. So each takes the other's output, in order.
//
// `en_next_i` enables the next cycle. `time_i` counts beats of a polynomial, never pauses while enabled, and starts at
// 0 after reset. The tag (`inverse_i`, `sel_i`, `user_i`) comes with it, constant during a polynomial; its data come
// ntt_pkg::lead cycles later; the result comes one polynomial and ntt_pkg::pipe cycles after the tag, and its `user_o`
// and `time_o` two cycles before it. Memory: N words, in place. See doc/ntt.md.
module ntt_pipe #(
    parameter int unsigned Width = 60,
    parameter int unsigned LogN = 16,
    parameter int unsigned Count = 1,
    parameter int unsigned SelWidth = 1,
    parameter int unsigned UserWidth = 1,
    parameter int unsigned FoldWidth = 36,
    parameter logic [Count*sparse_moduli_pkg::FormWidth-1:0] Moduli = {Count{sparse_moduli_pkg::Boosted}},
    // Whether twiddle factors come from memory; otherwise they are made.
    parameter bit FromMemory = 1'b0,
    // Paths of the tables, see generate/pipe_twiddles.py.
    parameter Tables = "tables",
    localparam int unsigned LogLanes = ntt_pkg::log_lanes(LogN),
    localparam int unsigned Lanes = 1 << LogLanes,
    localparam int unsigned TimeWidth = LogN - LogLanes
) (
    input  logic                   clk_i,
    input  logic                   rst_ni,
    input  logic                   en_next_i,  // enable of the next cycle
    input  logic                   inverse_i,
    input  logic [   SelWidth-1:0] sel_i,
    input  logic [  TimeWidth-1:0] time_i,
    input  logic [  UserWidth-1:0] user_i,
    input  logic [Lanes*Width-1:0] data_i,
    output logic [  TimeWidth-1:0] time_o,
    output logic [  UserWidth-1:0] user_o,
    output logic [Lanes*Width-1:0] data_o
);
  localparam int unsigned Lead = ntt_pkg::lead(LogN);
  localparam int unsigned FirstHalf = ntt_pkg::half(LogN, 1'b1);
  localparam int unsigned SecondHalf = ntt_pkg::half(LogN, 1'b0);
  localparam int unsigned TagWidth = 1 + SelWidth + UserWidth;

  logic [TagWidth-1:0] previous_q;
  logic [1:0] turn_q, turn;
  logic last_beat, en, middle_en;
  enable_copy u_enable (
      .clk_i, .rst_ni, .en_next_i, .en_o(en)
  );
  enable_copy u_middle_enable (
      .clk_i, .rst_ni, .en_next_i, .en_o(middle_en)
  );
  assign last_beat = &time_i;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      previous_q <= '0;
      turn_q <= '0;
    end else if (en) begin
      if (last_beat) begin
        previous_q <= {inverse_i, sel_i, user_i};
        turn_q <= turn_q + 1'b1;
      end
    end
  end

  logic [Lanes*Width-1:0] columns, rows, result;
  logic [TimeWidth-1:0] middle_time, second_time;
  logic second_inverse;
  logic [SelWidth-1:0] second_sel;
  logic [UserWidth-1:0] second_user;

  ntt_half #(
      .Width(Width), .LogN(LogN), .Count(Count), .SelWidth(SelWidth), .FoldWidth(FoldWidth),
      .Moduli(Moduli), .First(1'b1), .FromMemory(FromMemory), .BaseFile({Tables, "-inverse"}),
      .FactorFile({Tables, "-factor"})
  ) u_first (
      .clk_i, .rst_ni, .en_next_i, .inverse_i, .sel_i, .time_i, .data_i, .data_o(columns)
  );

  delay_line #(
      .Width(TimeWidth + 2), .Depth(Lead + FirstHalf)
  ) u_tag_middle (
      .clk_i, .rst_ni, .en_i(en), .d_i({time_i, turn_q}), .q_o({middle_time, turn})
  );
  transpose_full #(
      .Width(Width), .LogN(LogN)
  ) u_middle (
      .clk_i, .en_i(middle_en), .time_i(middle_time), .turn_i(turn), .data_i(columns), .data_o(rows)
  );

  // The second half works on the previous polynomial; its data come Lead cycles after this tag.
  delay_line #(
      .Width(TimeWidth + TagWidth), .Depth(FirstHalf + 3), .Cleared(1'b1)
  ) u_tag_second (
      .clk_i, .rst_ni, .en_i(en),
      .d_i({time_i, previous_q}),
      .q_o({second_time, second_inverse, second_sel, second_user})
  );
  ntt_half #(
      .Width(Width), .LogN(LogN), .Count(Count), .SelWidth(SelWidth), .FoldWidth(FoldWidth),
      .Moduli(Moduli), .First(1'b0), .FromMemory(FromMemory), .BaseFile({Tables, "-forward"}),
      .FactorFile({Tables, "-factor"})
  ) u_second (
      .clk_i, .rst_ni, .en_next_i,
      .inverse_i(second_inverse),
      .sel_i(second_sel),
      .time_i(second_time),
      .data_i(rows),
      .data_o(result)
  );
  // Lanes of the last digit are in reversed order.
  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    localparam logic [LogLanes-1:0] Lane = LogLanes'(l);
    wire [LogLanes-1:0] source;
    for (genvar i = 0; i < LogLanes; i++) begin : gen_bit
      assign source[i] = Lane[LogLanes-1-i];
    end
    assign data_o[Width*l+:Width] = result[Width*source+:Width];
  end
  delay_line #(
      .Width(TimeWidth + UserWidth), .Depth(Lead + SecondHalf - 2), .Cleared(1'b1)
  ) u_tag_out (
      .clk_i, .rst_ni, .en_i(en), .d_i({second_time, second_user}), .q_o({time_o, user_o})
  );

`ifndef SYNTHESIS
  // The generators keep the powers of 16 blocks of 2^LogLanes beats, numbered within a polynomial.
  initial begin
    assert (LogN <= 16 && TimeWidth - LogLanes >= 4)
    else $fatal(1, "ntt_pipe: LogN is 8 or 10 to 16");
  end
  // The memories' arrangement relies on this: beats in order from 0, and one tag per polynomial.
  logic [TimeWidth-1:0] due_q;
  logic [SelWidth:0] tag_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      due_q <= '0;
    end else if (en) begin
      due_q <= time_i + 1'b1;
      tag_q <= {inverse_i, sel_i};
    end
  end
  a_beats_come_in_order :
  assert property (@(posedge clk_i) disable iff (!rst_ni) en |-> time_i == due_q);
  a_a_polynomial_has_one_tag :
  assert property (@(posedge clk_i) disable iff (!rst_ni) en && time_i != 0 |-> {inverse_i, sel_i} == tag_q);
  a_a_modulus_is_selected :
  assert property (@(posedge clk_i) disable iff (!rst_ni) en |-> 32'(sel_i) < Count);
`endif
endmodule
