// An AXI4-Stream port of polynomials, a beat of words at a time, for a pipeline that decides two cycles ahead to move.
//
// Frames are put in order before a stream_buffer: after an early last flag the rest of the polynomial is zeros; if the
// flag does not come with the last beat, beats are discarded until it does. So each beat in the buffer is one that the
// pipeline will need. `next_o` signals that a step with `need_next_i` can be decided; `go_i`, that it is. Two cycles
// later it happens: `en_i`, with `need_i`, takes the beat. `there_o` signals a beat behind those taken until now.
// A word not below the modulus becomes zero. Each fault is reported in the cycle in which its beat is taken.
module frame_input #(
    parameter int unsigned Words = 16,
    parameter int unsigned TimeWidth = 12,
    parameter int unsigned UserWidth = 1
) (
    input  logic                 clk_i,
    input  logic                 rst_ni,
    input  logic                 need_next_i,
    input  logic                 go_i,
    input  logic                 en_i,
    input  logic                 need_i,
    input  logic [         59:0] modulus_i,
    input  logic [ Words*64-1:0] tdata_i,
    input  logic [UserWidth-1:0] tuser_i,
    input  logic                 tlast_i,
    input  logic                 tvalid_i,
    output logic                 tready_o,
    output logic                 next_o,
    output logic                 there_o,
    output logic                 taken_o,  // a beat that came, not one of zeros
    output logic [UserWidth-1:0] user_o,
    output logic [ Words*60-1:0] words_o,
    output logic                 range_o,
    output logic                 short_o,
    output logic                 missing_o
);
  // ---- Frames ----
  logic [TimeWidth-1:0] time_q;
  logic fill_q, skip_q, last_beat, short_frame, missing_last, offered, give, place;
  assign last_beat = &time_q;
  assign short_frame = !fill_q && tlast_i && !last_beat;
  assign missing_last = !fill_q && !tlast_i && last_beat;
  assign offered = fill_q || (tvalid_i && !skip_q);
  assign give = offered && place;
  assign tready_o = skip_q || (place && !fill_q);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {time_q, fill_q, skip_q} <= '0;
    end else begin
      if (give) begin
        time_q <= time_q + 1'b1;
        fill_q <= (fill_q || short_frame) && !last_beat;
      end
      if (give && missing_last) skip_q <= 1'b1;
      else if (skip_q && tvalid_i && tlast_i) skip_q <= 1'b0;
    end
  end

  // ---- Beats, less those that are promised ----
  logic [Words*64-1:0] data;
  logic valid, zero, is_short, is_missing, take;
  logic [2:0] count;
  stream_buffer #(
      .Width(3 + UserWidth + Words * 64)
  ) u_buffer (
      .clk_i, .rst_ni, .data_i({fill_q, short_frame, missing_last, tuser_i, tdata_i}),
      .valid_i(offered), .ready_o(place),
      .data_o({zero, is_short, is_missing, user_o, data}), .valid_o(valid), .count_o(count), .ready_i(take)
  );
  logic [2:0] free_q;
  assign next_o = !need_next_i || free_q != 0;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) free_q <= '0;
    else free_q <= free_q + 3'(give) - 3'(go_i && need_next_i);
  end

  // ---- The pipeline's side ----
  logic [Words-1:0] bad;
  assign take = need_i && en_i;
  assign taken_o = take && !zero;
  assign there_o = count > 3'(take);
  for (genvar w = 0; w < Words; w++) begin : gen_word
    assign bad[w] = data[64*w+:64] >= {4'b0, modulus_i};
    assign words_o[60*w+:60] = zero || bad[w] ? '0 : data[64*w+:60];
  end
  assign range_o = taken_o && |bad;
  assign short_o = taken_o && is_short;
  assign missing_o = taken_o && is_missing;

`ifndef SYNTHESIS
  a_what_was_promised_is_there :
  assert property (@(posedge clk_i) disable iff (!rst_ni) take |-> valid);
`endif
endmodule
