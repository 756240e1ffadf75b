// frame_input behind a stream_buffer, for a pipeline whose enable is a register.
//
// `next_o` signals that the need of the next cycle, if any, will be met. That need is `need_next_i` after a cycle with
// `en_i`, and `need_i` otherwise. The signal is never early. It may be a cycle late where the buffer runs empty, after
// a frame that was too short, and behind one that was too long. `there_o` signals a beat behind those taken until now.
module buffered_input #(
    parameter int unsigned Words = 16,
    parameter int unsigned TimeWidth = 12,
    parameter int unsigned UserWidth = 1
) (
    input  logic                 clk_i,
    input  logic                 rst_ni,
    input  logic                 en_i,
    input  logic                 need_i,
    input  logic                 need_next_i,
    input  logic [TimeWidth-1:0] time_i,
    input  logic [         59:0] modulus_i,
    input  logic [ Words*64-1:0] tdata_i,
    input  logic [UserWidth-1:0] tuser_i,
    input  logic                 tlast_i,
    input  logic                 tvalid_i,
    output logic                 tready_o,
    output logic                 ok_o,
    output logic                 next_o,
    output logic                 there_o,
    output logic                 taken_o,
    output logic [UserWidth-1:0] user_o,
    output logic [ Words*60-1:0] words_o,
    output logic                 range_o,
    output logic                 short_o,
    output logic                 missing_o
);
  logic [Words*64-1:0] data;
  logic last, valid, more, ready, filling, skipping;
  stream_buffer #(
      .Width(1 + UserWidth + Words * 64)
  ) u_buffer (
      .clk_i, .rst_ni, .data_i({tlast_i, tuser_i, tdata_i}), .valid_i(tvalid_i), .ready_o(tready_o),
      .data_o({last, user_o, data}), .valid_o(valid), .more_o(more), .ready_i(ready)
  );
  frame_input #(
      .Words(Words), .TimeWidth(TimeWidth)
  ) u_input (
      .clk_i, .rst_ni, .en_i, .need_i, .time_i, .modulus_i, .tdata_i(data), .tlast_i(last), .tvalid_i(valid),
      .tready_o(ready), .ok_o, .taken_o, .filling_o(filling), .skipping_o(skipping), .words_o, .range_o, .short_o,
      .missing_o
  );
  assign there_o = (taken_o ? more : valid) && !skipping && !missing_o;
  assign next_o = !(en_i ? need_next_i : need_i) || (filling && !(need_i && en_i && (&time_i))) || there_o;
endmodule
