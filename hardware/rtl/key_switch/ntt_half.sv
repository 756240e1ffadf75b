// Half of a transform: two digits on a stream of beats.
//
// In a block of 2^LogLanes beats, words form a 2^LogLanes x 2^LogLanes square of beats and lanes. One digit is
// transformed across lanes, transpose_tile exchanges the square, and the other digit is transformed. In the first half
// the latter covers only its topmost bits, unless LogN is a multiple of 4. `inverse_i`, `sel_i` and `time_i` come
// ntt_pkg::lead cycles before their beat of data; data leave ntt_pkg::half cycles after they arrive. See doc/ntt.md.
module ntt_half #(
    parameter int unsigned Width = 60,
    parameter int unsigned LogN = 16,
    parameter int unsigned Count = 1,
    parameter int unsigned SelWidth = 1,
    parameter int unsigned FoldWidth = 36,
    parameter logic [Count*sparse_moduli_pkg::FormWidth-1:0] Moduli = {Count{sparse_moduli_pkg::Boosted}},
    parameter bit First = 1'b1,
    // Whether twiddle factors come from memory; otherwise they are made.
    parameter bit FromMemory = 1'b0,
    parameter BaseFile = "base",
    parameter FactorFile = "factor",
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
    input  logic [Lanes*Width-1:0] data_i,
    output logic [Lanes*Width-1:0] data_o
);
  localparam int unsigned Lead = ntt_pkg::lead(LogN);
  localparam int unsigned StageLatency = 9 * LogLanes;
  logic [(Lanes-1)*Width-1:0] first_twiddles, second_twiddles;
  logic [Lanes*Width-1:0] first_data, second_data;
  logic first_inverse, second_inverse;
  logic [SelWidth-1:0] first_sel, second_sel;
  logic [LogLanes:0] first_beat, tile_beat;
  logic en, tile_en;
  enable_copy u_enable (
      .clk_i, .rst_ni, .en_next_i, .en_o(en)
  );
  enable_copy u_tile_enable (
      .clk_i, .rst_ni, .en_next_i, .en_o(tile_en)
  );

  if (FromMemory) begin : gen_memory
    twiddle_memory #(
        .Width(Width), .LogN(LogN), .Count(Count), .SelWidth(SelWidth), .RowInverse(First), .LineFile(BaseFile)
    ) u_twiddles (
        .clk_i, .rst_ni, .en_next_i, .inverse_i, .sel_i, .time_i,
        .first_o(first_twiddles),
        .second_o(second_twiddles)
    );
  end else begin : gen_generator
    twiddle_generator #(
        .Width(Width), .LogN(LogN), .Count(Count), .SelWidth(SelWidth), .FoldWidth(FoldWidth),
        .Moduli(Moduli), .RowInverse(First), .BaseFile(BaseFile), .FactorFile(FactorFile)
    ) u_twiddles (
        .clk_i, .rst_ni, .en_next_i, .inverse_i, .sel_i, .time_i,
        .first_o(first_twiddles),
        .second_o(second_twiddles)
    );
  end

  delay_line #(
      .Width(SelWidth + LogLanes + 2), .Depth(Lead)
  ) u_tag_first (
      .clk_i, .rst_ni, .en_i(en),
      .d_i({inverse_i, sel_i, time_i[LogLanes:0]}),
      .q_o({first_inverse, first_sel, first_beat})
  );
  delay_line #(
      .Width(LogLanes + 1), .Depth(StageLatency)
  ) u_tag_tile (
      .clk_i, .rst_ni, .en_i(en), .d_i(first_beat), .q_o(tile_beat)
  );
  delay_line #(
      .Width(SelWidth + 1), .Depth(StageLatency + Lanes + 1)
  ) u_tag_second (
      .clk_i, .rst_ni, .en_i(en), .d_i({first_inverse, first_sel}), .q_o({second_inverse, second_sel})
  );

  ntt_stage #(
      .Width(Width), .LogLanes(LogLanes), .Count(Count), .SelWidth(SelWidth), .FoldWidth(FoldWidth), .Moduli(Moduli)
  ) u_first (
      .clk_i, .rst_ni, .en_next_i,
      .inverse_i(first_inverse),
      .sel_i(first_sel),
      .data_i,
      .twiddles_i(first_twiddles),
      .data_o(first_data)
  );
  transpose_tile #(
      .Width(Width), .LogLanes(LogLanes)
  ) u_tile (
      .clk_i, .en_i(tile_en), .beat_i(tile_beat), .data_i(first_data), .data_o(second_data)
  );
  ntt_stage #(
      .Width(Width), .LogLanes(LogLanes), .Layers(First ? ntt_pkg::second_digit(LogN) : LogLanes),
      .Count(Count), .SelWidth(SelWidth), .FoldWidth(FoldWidth), .Moduli(Moduli)
  ) u_second (
      .clk_i, .rst_ni, .en_next_i,
      .inverse_i(second_inverse),
      .sel_i(second_sel),
      .data_i(second_data),
      .twiddles_i(second_twiddles),
      .data_o
  );

`ifndef SYNTHESIS
  // Twiddle factors are canonical and not scaled, from the first tag after the reset on.
  localparam int unsigned Start = Lead + StageLatency + Lanes + 1;
  int unsigned enabled_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) enabled_q <= '0;
    else if (en && enabled_q <= Start) enabled_q <= enabled_q + 1;
  end
  function automatic logic below(input logic [SelWidth-1:0] sel, input logic [(Lanes-1)*Width-1:0] factors);
    below = 1'b1;
    for (int unsigned i = 0; i < Count; i++) begin
      if (Count == 1 || sel == SelWidth'(i)) begin
        for (int unsigned e = 0; e < Lanes - 1; e++) begin
          below &= 61'(factors[Width*e+:Width]) <
              sparse_moduli_pkg::modulus(Moduli[19*i+:19], Width) >> Moduli[19*i+:6];
        end
      end
    end
  endfunction
  a_factors_of_the_first_digit_are_canonical :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   en && enabled_q > Start |-> below(first_sel, first_twiddles));
  a_factors_of_the_second_digit_are_canonical :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   en && enabled_q > Start |-> below(second_sel, second_twiddles));
`endif
endmodule
