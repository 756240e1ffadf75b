// Exchanges rows and columns of a polynomial between the two halves of a transform, in place: N words in 2^LogLanes
// banks.
//
// A polynomial comes in at times (w2, w1, w0), lane (h, l). It leaves one polynomial later at times (r2, r1, r0) = (w0,
// reversed(l), w2), lane (w1, h). w1 and l are digits of Middle bits; h has the remaining bits of a lane's number. Word
// and bank: bank = (h, l ^ w1), so that the words of a beat are in different banks both when written and when read.
// Each word is written where the previous polynomial's word of the same time was read a cycle before: the arrangement
// of polynomial `turn_i` (modulo 4) is one of four, derived in doc/ntt.md. In all of them neighbours in time have
// different places, so no word of a polynomial is read while its place is written; in simulations such a read gives
// zeros. `time_i` never pauses while enabled. Latency of a read beat: N / 2^LogLanes + 3.
module transpose_full #(
    parameter  int unsigned Width = 60,
    parameter  int unsigned LogN = 16,
    localparam int unsigned LogLanes = ntt_pkg::log_lanes(LogN),
    localparam int unsigned Lanes = 1 << LogLanes,
    localparam int unsigned TimeWidth = LogN - LogLanes
) (
    input  logic                   clk_i,
    input  logic                   en_i,
    input  logic [  TimeWidth-1:0] time_i,
    input  logic [            1:0] turn_i,
    input  logic [Lanes*Width-1:0] data_i,
    output logic [Lanes*Width-1:0] data_o
);
  localparam int unsigned Middle = ntt_pkg::second_digit(LogN);
  logic [LogLanes-1:0] t2, t0;
  logic [Middle-1:0] t1, mix_in, mix1_q, mix2_q;
  logic [Lanes*Width-1:0] read;
  assign {t2, t1, t0} = time_i;

  function automatic logic [Middle-1:0] reversed(input logic [Middle-1:0] x);
    for (int unsigned i = 0; i < Middle; i++) reversed[i] = x[Middle-1-i];
  endfunction

  // Written: the lane of bank b is b ^ w1. Read: the w1 of bank b is that of its Middle bits ^ l, with l =
  // reversed(r1).
  assign mix_in = t1;

  for (genvar b = 0; b < Lanes; b++) begin : gen_bank
    (* ram_style = "ultra", no_rw_check *) logic [Width-1:0] memory[1<<TimeWidth];
    localparam logic [Middle-1:0] Bank = Middle'(b);
    logic [LogLanes-1:0] lane;
    logic [TimeWidth-1:0] address, address_q, written_q;
    logic [Width-1:0] word_q, write_q, late_q;
    assign lane = LogLanes'(b) ^ LogLanes'(mix_in);
    always_comb begin
      unique case (turn_i)
        2'd0: address = {t2, t1, t0};
        2'd1: address = {t0, Bank ^ reversed(t1), t2};
        2'd2: address = {t2, t1 ^ Bank ^ reversed(Bank), t0};
        default: address = {t0, reversed(t1 ^ Bank), t2};
      endcase
    end
    always_ff @(posedge clk_i) begin
      if (en_i) begin
        {written_q, address_q} <= {address_q, address};
        write_q <= data_i[Width*lane+:Width];
        late_q <= write_q;
        word_q <= memory[address_q];
        memory[written_q] <= late_q;
`ifndef SYNTHESIS
        if (address_q == written_q) word_q <= '0;
`endif
      end
    end
    assign read[Width*b+:Width] = word_q;
  end

  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    // Lane (w1, h) as (h, w1).
    localparam logic [LogLanes-1:0] Lane = LogLanes'(l >> (LogLanes - Middle) | l << Middle);
    logic [LogLanes-1:0] bank;
    assign bank = Lane ^ LogLanes'(mix2_q);
    always_ff @(posedge clk_i) if (en_i) data_o[Width*l+:Width] <= read[Width*bank+:Width];
  end

  always_ff @(posedge clk_i) begin
    if (en_i) begin
      mix1_q <= reversed(t1);
      mix2_q <= mix1_q;
    end
  end
endmodule
