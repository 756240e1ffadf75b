// Exchanges lanes and time within tiles of 2^LogLanes beats: word `lane` of beat `time` comes out as word `time` of
// beat reversed(lane), the bits of the lane number in reverse.
//
// A square memory, one bank per lane. The word of lane l at time t lies in bank l ^ t. As a tile is read, the next one
// takes its places, so places alternate between two arrangements. `beat_i` numbers beats from the start of an even
// tile, modulo two tiles, and never pauses while enabled. Latency 2^LogLanes + 1. See doc/ntt.md.
module transpose_tile #(
    parameter  int unsigned Width = 60,
    parameter  int unsigned LogLanes = 4,
    localparam int unsigned Lanes = 1 << LogLanes
) (
    input  logic                   clk_i,
    input  logic                   en_i,
    input  logic [     LogLanes:0] beat_i,
    input  logic [Lanes*Width-1:0] data_i,
    output logic [Lanes*Width-1:0] data_o
);
  logic [LogLanes-1:0] time_now, time_q;
  logic [Lanes*Width-1:0] read;
  assign time_now = beat_i[LogLanes-1:0];


  for (genvar b = 0; b < Lanes; b++) begin : gen_bank
    logic [Width-1:0] memory[Lanes];
    logic [LogLanes-1:0] address, lane;
    logic [Width-1:0] word_q;
    assign lane = LogLanes'(b) ^ time_now;
    assign address = beat_i[LogLanes] ? lane : time_now;
    always_ff @(posedge clk_i) begin
      if (en_i) begin
        word_q <= memory[address];
        memory[address] <= data_i[Width*reversed_wire(lane)+:Width];
      end
    end
    assign read[Width*b+:Width] = word_q;
  end

  // Lanes enter in reversed order.
  function automatic logic [LogLanes-1:0] reversed_wire(input logic [LogLanes-1:0] x);
    for (int unsigned i = 0; i < LogLanes; i++) reversed_wire[i] = x[LogLanes-1-i];
  endfunction

  always_ff @(posedge clk_i) if (en_i) time_q <= time_now;

  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    logic [LogLanes-1:0] bank;
    assign bank = LogLanes'(l) ^ time_q;
    assign data_o[Width*l+:Width] = read[Width*bank+:Width];
  end
endmodule
