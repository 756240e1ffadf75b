// Twiddle factors of one half of a transform from memory: the ports, the times and the factors of twiddle_generator,
// which makes them instead. It is there to be compared with that one; see doc/ntt.md.
//
// A block of 2^LogLanes beats has one line of factors for the digit whose factors last a block, and a line a beat for
// the other. Transforms of one direction differ from block to block, those of the other are the same in all blocks.
// A memory for each of the four has one read a cycle: the digits of a direction take different ones.
module twiddle_memory #(
    parameter int unsigned Width = 60,
    parameter int unsigned LogN = 16,
    parameter int unsigned Count = 1,
    parameter int unsigned SelWidth = 1,
    parameter bit RowInverse = 1'b1,
    parameter LineFile = "lines",
    localparam int unsigned LogLanes = ntt_pkg::log_lanes(LogN),
    localparam int unsigned Lanes = 1 << LogLanes,
    localparam int unsigned TimeWidth = LogN - LogLanes,
    localparam int unsigned Lead = ntt_pkg::lead(LogN),
    localparam int unsigned Gap = 9 * LogLanes + Lanes + 1
) (
    input  logic                       clk_i,
    input  logic                       rst_ni,
    input  logic                       en_next_i,  // enable of the next cycle
    input  logic                       inverse_i,
    input  logic [       SelWidth-1:0] sel_i,
    input  logic [      TimeWidth-1:0] time_i,
    output logic [(Lanes-1)*Width-1:0] first_o,
    output logic [(Lanes-1)*Width-1:0] second_o
);
  localparam int unsigned TagWidth = 1 + SelWidth + TimeWidth;
  localparam int unsigned BlockWidth = TimeWidth - LogLanes;
  localparam int unsigned Beats = 1 << TimeWidth;
  localparam int unsigned Blocks = 1 << BlockWidth;
  typedef logic [(Lanes-1)*Width-1:0] line_t;

  logic en;
  enable_copy u_enable (
      .clk_i, .rst_ni, .en_next_i, .en_o(en)
  );

  // Tags a cycle before the lines that they ask for come out.
  logic [TagWidth-1:0] first, second;
  delay_line #(
      .Width(TagWidth), .Depth(Lead - 1)
  ) u_tag_first (
      .clk_i, .rst_ni, .en_i(en), .d_i({inverse_i, sel_i, time_i}), .q_o(first)
  );
  delay_line #(
      .Width(TagWidth), .Depth(Gap)
  ) u_tag_second (
      .clk_i, .rst_ni, .en_i(en), .d_i(first), .q_o(second)
  );

  // An inverse transform's first digit has a line a beat and its second one a line a block; a forward one has them the
  // other way.
  logic [TagWidth-1:0] beat_of_rows, beat_of_others, block_of_rows, block_of_others;
  assign beat_of_rows = RowInverse ? first : second;
  assign block_of_rows = RowInverse ? second : first;
  assign beat_of_others = RowInverse ? second : first;
  assign block_of_others = RowInverse ? first : second;

  logic [(Lanes-1)*Width-1:0] beat_rom[Count*Beats];
  logic [(Lanes-1)*Width-1:0] block_rom[Count*Blocks];
  logic [(Lanes-1)*Width-1:0] other_beat_rom[Count*Lanes];
  logic [(Lanes-1)*Width-1:0] other_block_rom[Count];
  initial begin
    $readmemh({LineFile, ".beats"}, beat_rom);
    $readmemh({LineFile, ".blocks"}, block_rom);
    $readmemh({LineFile, ".other-beats"}, other_beat_rom);
    $readmemh({LineFile, ".other-blocks"}, other_block_rom);
  end

  localparam int unsigned BeatAddress = $clog2(Count * Beats);
  localparam int unsigned BlockAddress = $clog2(Count * Blocks);
  localparam int unsigned OtherAddress = $clog2(Count * Lanes);
  line_t beat_q, block_q, other_beat_q, other_block_q;
  logic first_inverse_q, second_inverse_q;
  always_ff @(posedge clk_i) begin
    if (en) begin
      beat_q <= beat_rom[BeatAddress'(beat_of_rows[TagWidth-2:0])];
      block_q <= block_rom[BlockAddress'(block_of_rows[TagWidth-2:LogLanes])];
      other_beat_q <= other_beat_rom[
          OtherAddress'({beat_of_others[TagWidth-2-:SelWidth], beat_of_others[LogLanes-1:0]})];
      other_block_q <= other_block_rom[block_of_others[TagWidth-2-:SelWidth]];
      first_inverse_q <= first[TagWidth-1];
      second_inverse_q <= second[TagWidth-1];
    end
  end
  // The direction chooses among the memories, and each takes what it needs of a beat's number.
  logic unused;
  assign unused = ^{
    beat_of_rows[TagWidth-1], block_of_rows[TagWidth-1], block_of_rows[LogLanes-1:0], beat_of_others[TagWidth-1],
    beat_of_others[TimeWidth-1:LogLanes], block_of_others[TagWidth-1], block_of_others[TimeWidth-1:0]
  };
  assign first_o = first_inverse_q ? (RowInverse ? beat_q : other_beat_q) : (RowInverse ? other_block_q : block_q);
  assign second_o = second_inverse_q ? (RowInverse ? block_q : other_block_q) : (RowInverse ? other_beat_q : beat_q);
endmodule
