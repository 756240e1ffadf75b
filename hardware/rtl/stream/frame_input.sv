// An AXI4-Stream port of polynomials, a beat of words at a time. The pipeline takes a beat when it needs one.
//
// `need_i` signals the need, and `ok_o` that the need, if any, is met; a beat is taken in a cycle with both and `en_i`.
// A word not below the modulus becomes zero. After an early last flag the rest of the polynomial is zeros. If the flag
// does not come with the last beat, beats are discarded until it does. Each fault is reported in the cycle in which it
// occurs.
module frame_input #(
    parameter int unsigned Words = 16,
    parameter int unsigned TimeWidth = 12
) (
    input  logic                 clk_i,
    input  logic                 rst_ni,
    input  logic                 en_i,
    input  logic                 need_i,
    input  logic [TimeWidth-1:0] time_i,
    input  logic [         59:0] modulus_i,
    input  logic [ Words*64-1:0] tdata_i,
    input  logic                 tlast_i,
    input  logic                 tvalid_i,
    output logic                 tready_o,
    output logic                 ok_o,
    output logic                 taken_o,
    output logic                 filling_o,  // with zeros, since a last flag that came early
    output logic                 skipping_o,  // beats are discarded
    output logic [ Words*60-1:0] words_o,
    output logic                 range_o,
    output logic                 short_o,
    output logic                 missing_o
);
  logic short_q, skip_q, last_beat, step;
  logic [Words-1:0] bad;

  assign last_beat = &time_i;
  assign filling_o = short_q;
  assign skipping_o = skip_q;
  assign ok_o = !need_i || short_q || (tvalid_i && !skip_q);
  assign step = need_i && en_i;
  assign taken_o = step && !short_q;
  assign tready_o = skip_q || taken_o;
  for (genvar w = 0; w < Words; w++) begin : gen_word
    assign bad[w] = tdata_i[64*w+:64] >= {4'b0, modulus_i};
    assign words_o[60*w+:60] = short_q || bad[w] ? '0 : tdata_i[64*w+:60];
  end
  assign range_o = taken_o && |bad;
  assign short_o = taken_o && tlast_i && !last_beat;
  assign missing_o = taken_o && !tlast_i && last_beat;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {short_q, skip_q} <= '0;
    end else begin
      if (short_o) short_q <= 1'b1;
      else if (step && last_beat) short_q <= 1'b0;
      if (missing_o) skip_q <= 1'b1;
      else if (skip_q && tvalid_i && tlast_i) skip_q <= 1'b0;
    end
  end
endmodule
