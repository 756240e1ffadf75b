// One digit of a transform: Layers layers of butterflies over 2^LogLanes lanes, one beat per cycle.
//
// Layer x pairs the lanes that differ in bit x. Twiddle factors come with the beat, 2^LogLanes - 1 of them in groups:
// word 2^g - 1 + v is factor v of group g. A forward layer x uses group x, with v the lane's bits below x. An inverse
// one uses group LogLanes - 1 - x, with v the lane's bits above x, reversed. Latency 9 Layers. See doc/ntt.md.
module ntt_stage #(
    parameter int unsigned Width = 60,
    parameter int unsigned LogLanes = 4,
    parameter int unsigned Layers = LogLanes,
    parameter int unsigned Count = 1,
    parameter int unsigned SelWidth = 1,
    parameter int unsigned FoldWidth = 36,
    parameter logic [Count*sparse_moduli_pkg::FormWidth-1:0] Moduli = {Count{sparse_moduli_pkg::Boosted}},
    localparam int unsigned Lanes = 1 << LogLanes
) (
    input  logic                         clk_i,
    input  logic                         rst_ni,
    input  logic                         en_next_i,  // enable of the next cycle
    input  logic                         inverse_i,
    input  logic [         SelWidth-1:0] sel_i,
    input  logic [      Lanes*Width-1:0] data_i,
    input  logic [(Lanes-1)*Width-1:0]   twiddles_i,
    output logic [      Lanes*Width-1:0] data_o
);
  logic [Layers:0] inverse;
  logic [Layers:0][SelWidth-1:0] sel;
  logic [Layers:0][(Lanes-1)*Width-1:0] twiddles;

  assign twiddles[0] = twiddles_i;
  assign inverse[0] = inverse_i;
  assign sel[0] = sel_i;

  // Words before layer x, and after the last one.
  for (genvar x = 0; x <= Layers; x++) begin : gen_level
    for (genvar l = 0; l < Lanes; l++) begin : gen_lane
      logic [Width-1:0] word;
      if (x == 0) begin : gen_in
        assign word = data_i[Width*l+:Width];
      end
      if (x == Layers) begin : gen_out
        assign data_o[Width*l+:Width] = word;
      end
    end
  end

  for (genvar x = 0; x < Layers; x++) begin : gen_layer
    for (genvar e = 0; e < Lanes - 1; e++) begin : gen_twiddle
      logic [Width-1:0] word;
      assign word = twiddles[x][Width*e+:Width];
    end
    for (genvar p = 0; p < Lanes / 2; p++) begin : gen_pair
      localparam int unsigned Below = p % (1 << x);
      localparam int unsigned Above = p >> x;
      localparam int unsigned Top = Above << (x + 1) | Below;
      localparam int unsigned Bottom = Top | 1 << x;
      localparam int unsigned Group = LogLanes - 1 - x;
      localparam int unsigned Forward = (1 << x) - 1 + Below;
      localparam int unsigned Inverse = (1 << Group) - 1 + reversed(Above, Group);
      logic [Width-1:0] w;
      logic pair_en;
      enable_copy u_enable (
          .clk_i, .rst_ni, .en_next_i, .en_o(pair_en)
      );
      assign w = inverse[x] ? gen_layer[x].gen_twiddle[Inverse].word : gen_layer[x].gen_twiddle[Forward].word;
      butterfly #(
          .Width(Width), .Count(Count), .SelWidth(SelWidth), .FoldWidth(FoldWidth), .Moduli(Moduli)
      ) u_butterfly (
          .clk_i, .rst_ni, .en_i(pair_en),
          .inverse_i(inverse[x]),
          .sel_i(sel[x]),
          .a_i(gen_level[x].gen_lane[Top].word),
          .b_i(gen_level[x].gen_lane[Bottom].word),
          .w_i(w),
          .x_o(gen_level[x+1].gen_lane[Top].word),
          .y_o(gen_level[x+1].gen_lane[Bottom].word)
      );
    end
    if (x + 1 < Layers) begin : gen_next
      logic en;
      enable_copy u_enable (
          .clk_i, .rst_ni, .en_next_i, .en_o(en)
      );
      delay_line #(
          .Width((Lanes - 1) * Width + SelWidth + 1), .Depth(9)
      ) u_delay (
          .clk_i, .rst_ni, .en_i(en),
          .d_i({twiddles[x], sel[x], inverse[x]}),
          .q_o({twiddles[x+1], sel[x+1], inverse[x+1]})
      );
    end else begin : gen_last
      assign {twiddles[x+1], sel[x+1], inverse[x+1]} = '0;
    end
  end

  function automatic int unsigned reversed(input int unsigned x, input int unsigned bits);
    reversed = 0;
    for (int unsigned i = 0; i < bits; i++) reversed = reversed | (((x >> i) & 1) << (bits - 1 - i));
  endfunction
endmodule
