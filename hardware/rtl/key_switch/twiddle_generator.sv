// Twiddle factors of one half of a transform (two digits of LogLanes layers each), computed when needed.
//
// A block of 2^LogLanes beats has one base b: factor v of group g is b^(2^i) Omega^e, where Omega is a 2^(2
// LogLanes)-th root of unity and e is known. The generator squares the base 2 LogLanes - 1 times in a ring of one
// multiplier. A second multiplier forms the factors that serve a whole block, and one multiplier each forms those that
// change every beat. Bases and powers of Omega come from small tables. Every operand of a product is a register.
// doc/ntt.md derives all orders.
//
// `time_i` numbers beats and never pauses while enabled. The factors of the first digit come out Lead cycles after
// their beat's `time_i`, those of the second one Gap cycles later.
module twiddle_generator #(
    parameter int unsigned Width = 60,
    parameter int unsigned LogN = 16,
    parameter int unsigned Count = 1,
    parameter int unsigned SelWidth = 1,
    parameter int unsigned FoldWidth = 36,
    parameter logic [Count*sparse_moduli_pkg::FormWidth-1:0] Moduli = {Count{sparse_moduli_pkg::Boosted}},
    // Whether inverse transforms have a base for every block (first half) or forward ones (second half).
    parameter bit RowInverse = 1'b1,
    parameter BaseFile = "base.hex",
    parameter FactorFile = "factor.hex",
    localparam int unsigned LogLanes = ntt_pkg::log_lanes(LogN),
    localparam int unsigned Lanes = 1 << LogLanes,
    localparam int unsigned TimeWidth = LogN - LogLanes,
    localparam int unsigned Levels = 2 * LogLanes,
    localparam int unsigned SerialStart = 9 * (Levels - 1) + 5,
    localparam int unsigned Lead = SerialStart + Lanes + 8,
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
  localparam int unsigned Depth = 16;  // blocks whose powers and factors are kept

  // 1 / 9 modulo 2^LogLanes: 9 * 9 = 81 = 1 modulo 16.
  localparam logic [LogLanes-1:0] InverseOf9 = LogLanes'(9);

  logic en;
  enable_copy u_enable (
      .clk_i, .rst_ni, .en_next_i, .en_o(en)
  );

  typedef logic [TagWidth-1:0] tag_t;
  tag_t tag0, tag1_q, tag2_q, tag4, tag_serial, tag_written, tag_full, tag_first, tag_second;

  function automatic logic inverse_of(input tag_t tag);
    inverse_of = tag[TagWidth-1];
  endfunction
  function automatic logic [SelWidth-1:0] sel_of(input tag_t tag);
    sel_of = tag[TimeWidth+:SelWidth];
  endfunction
  function automatic logic [LogLanes-1:0] beat_of(input tag_t tag);
    beat_of = tag[LogLanes-1:0];
  endfunction
  function automatic logic [3:0] place_of(input tag_t tag);
    place_of = tag[LogLanes+:4];
  endfunction
  // The power of its block that passes the ring's first register at a beat.
  function automatic logic [LogLanes-1:0] exponent_of(input tag_t tag);
    exponent_of = LogLanes'(beat_of(tag) * InverseOf9);
  endfunction
  // The shift of a selected modulus: twiddle factors are not scaled, one operand of a product is.
  function automatic logic [5:0] shift_of(input logic [SelWidth-1:0] sel);
    shift_of = '0;
    for (int unsigned i = 0; i < Count; i++) begin
      if (Count == 1 || sel == SelWidth'(i)) shift_of = Moduli[19*i+:6];
    end
  endfunction

  // Tags at the times of their use.
  assign tag0 = {inverse_i, sel_i, time_i};
  always_ff @(posedge clk_i) if (en) {tag2_q, tag1_q} <= {tag1_q, tag0};
  delay_line #(
      .Width(TagWidth), .Depth(2)
  ) u_tag4 (
      .clk_i, .rst_ni, .en_i(en), .d_i(tag2_q), .q_o(tag4)
  );
  delay_line #(
      .Width(TagWidth), .Depth(SerialStart - 4)
  ) u_tag_serial (
      .clk_i, .rst_ni, .en_i(en), .d_i(tag4), .q_o(tag_serial)
  );
  delay_line #(
      .Width(TagWidth), .Depth(8)
  ) u_tag_written (
      .clk_i, .rst_ni, .en_i(en), .d_i(tag_serial), .q_o(tag_written)
  );
  delay_line #(
      .Width(TagWidth), .Depth(Lead - 9 - SerialStart)
  ) u_tag_full (
      .clk_i, .rst_ni, .en_i(en), .d_i(tag_serial), .q_o(tag_full)
  );
  delay_line #(
      .Width(TagWidth), .Depth(8)
  ) u_tag_first (
      .clk_i, .rst_ni, .en_i(en), .d_i(tag_full), .q_o(tag_first)
  );
  delay_line #(
      .Width(TagWidth), .Depth(Gap)
  ) u_tag_second (
      .clk_i, .rst_ni, .en_i(en), .d_i(tag_first), .q_o(tag_second)
  );

  // Bases: for each modulus those of all blocks, then one for transforms of the other direction.
  localparam int unsigned BlockWidth = TimeWidth - LogLanes;
  localparam int unsigned Bases = 1 << BlockWidth;
  logic [Width-1:0] base_rom[Count*Bases];
  logic [Width-1:0] single_rom[Count];
  logic [Width-1:0] rows_q, single_q, base_q;
  initial begin
    $readmemh({BaseFile, ".rows"}, base_rom);
    $readmemh({BaseFile, ".single"}, single_rom);
  end
  localparam int unsigned BaseWidth = $clog2(Count * Bases);
  always_ff @(posedge clk_i) begin
    if (en) begin
      rows_q   <= base_rom[BaseWidth'({sel_of(tag0), tag0[LogLanes+:BlockWidth]})];
      single_q <= single_rom[sel_of(tag0)];
      base_q   <= inverse_of(tag1_q) == RowInverse ? rows_q : single_q;
    end
  end

  // The ring of squares: power i of a block passes at beat 9 i of it, 7 cycles in the multiplier and one in either
  // register. The first one takes a base or a square; the second one has it without the modulus' shift, too.
  logic first_q;  // whether a base enters
  logic [Width-1:0] square, scaled3_q, scaled4_q, power4_q;
  logic [SelWidth-1:0] square_sel, sel3_q, sel4_q;
  logic [3:0] square_place, place3_q, place4_q;
  always_ff @(posedge clk_i) begin
    if (en) begin
      first_q <= exponent_of(tag1_q) == 0;
      scaled3_q <= first_q ? base_q << shift_of(sel_of(tag2_q)) : square;
      sel3_q <= first_q ? sel_of(tag2_q) : square_sel;
      place3_q <= first_q ? place_of(tag2_q) : square_place;
      power4_q <= scaled3_q >> shift_of(sel3_q);
      {scaled4_q, sel4_q, place4_q} <= {scaled3_q, sel3_q, place3_q};
    end
  end
  mod_mul_sparse #(
      .Width(Width), .Count(Count), .SelWidth(SelWidth), .FoldWidth(FoldWidth), .Moduli(Moduli)
  ) u_square (
      .clk_i, .en_i(en), .sel_i(sel4_q), .a_i(scaled4_q), .b_i(power4_q), .c_o(square)
  );
  delay_line #(
      .Width(SelWidth + 4), .Depth(7)
  ) u_square_tag (
      .clk_i, .rst_ni, .en_i(en), .d_i({sel4_q, place4_q}), .q_o({square_sel, square_place})
  );

  // Powers, as the serial multiplier and the parallel ones read them.
  logic [Levels-1:0][Width-1:0] serial_power, full_power;
  for (genvar i = 0; i < Levels; i++) begin : gen_power
    (* ram_style = "distributed" *) logic [Width-1:0] memory[Depth];
    always_ff @(posedge clk_i) if (en && exponent_of(tag4) == LogLanes'(i)) memory[place4_q] <= power4_q;
    assign serial_power[i] = memory[place_of(tag_serial)];
    assign full_power[i] = memory[place_of(tag_full)];
  end

  // Factors of a whole block: factor e at beat e, group floor(log2(e + 1)) with power Levels - 1 - group.
  logic [Width-1:0] serial_rom[2*Count*Lanes];
  initial $readmemh({FactorFile, ".serial"}, serial_rom);
  logic [Width-1:0] serial_base, serial_base_q, serial_factor_q, serial_product;
  logic [SelWidth-1:0] serial_sel_q;
  always_comb begin
    serial_base = serial_power[Levels-1];
    for (int unsigned g = 1; g < LogLanes; g++) begin
      if (beat_of(tag_serial) >= LogLanes'((1 << g) - 1)) serial_base = serial_power[Levels-1-g];
    end
  end
  localparam int unsigned FactorWidth = $clog2(2 * Count * Lanes);
  always_ff @(posedge clk_i) begin
    if (en) begin
      serial_factor_q <= serial_rom[
          FactorWidth'({sel_of(tag_serial), inverse_of(tag_serial), beat_of(tag_serial)})];
      serial_base_q <= serial_base;
      serial_sel_q <= sel_of(tag_serial);
    end
  end
  mod_mul_sparse #(
      .Width(Width), .Count(Count), .SelWidth(SelWidth), .FoldWidth(FoldWidth), .Moduli(Moduli)
  ) u_serial (
      .clk_i, .en_i(en), .sel_i(serial_sel_q), .a_i(serial_factor_q), .b_i(serial_base_q), .c_o(serial_product)
  );

  // Factors of one beat: a line holds all that a beat of a block needs.
  logic [(Lanes-1)*Width-1:0] full_rom[2*Count*Lanes];
  initial $readmemh({FactorFile, ".full"}, full_rom);
  logic [(Lanes-1)*Width-1:0] full_line;
  logic [SelWidth-1:0] full_sel_q;
  assign full_line = full_rom[FactorWidth'({sel_of(tag_full), inverse_of(tag_full), beat_of(tag_full)})];
  always_ff @(posedge clk_i) if (en) full_sel_q <= sel_of(tag_full);

  logic [(Lanes-1)*Width-1:0] serial_first_q, serial_second_q, full_q, full_second;
  // One cycle after tag_first and tag_second, when the factors are there.
  tag_t tag_end;
  logic second_inverse_q;
  for (genvar e = 0; e < Lanes - 1; e++) begin : gen_factor
    logic factor_en;
    enable_copy u_enable (
        .clk_i, .rst_ni, .en_next_i, .en_o(factor_en)
    );
    localparam int unsigned Group = $clog2(e + 2) - 1;
    (* ram_style = "distributed" *) logic [Width-1:0] memory[Depth];
    always_ff @(posedge clk_i) begin
      if (factor_en) begin
        if (beat_of(tag_written) == LogLanes'(e)) begin
          memory[place_of(tag_written)] <= serial_product >> shift_of(sel_of(tag_written));
        end
        serial_first_q[e*Width+:Width]  <= memory[place_of(tag_first)];
        serial_second_q[e*Width+:Width] <= memory[place_of(tag_second)];
      end
    end

    logic [Width-1:0] factor_q, power_q, product;
    always_ff @(posedge clk_i) begin
      if (factor_en) begin
        factor_q <= full_line[e*Width+:Width];
        power_q <= full_power[LogLanes-1-Group];
        full_q[e*Width+:Width] <= product >> shift_of(sel_of(tag_first));
      end
    end
    mod_mul_sparse #(
        .Width(Width), .Count(Count), .SelWidth(SelWidth), .FoldWidth(FoldWidth), .Moduli(Moduli)
    ) u_full (
        .clk_i, .en_i(factor_en), .sel_i(full_sel_q), .a_i(factor_q), .b_i(power_q), .c_o(product)
    );
  end

  always_ff @(posedge clk_i) begin
    if (en) begin
      tag_end <= tag_first;
      second_inverse_q <= inverse_of(tag_second);
    end
  end
  delay_line #(
      .Width((Lanes - 1) * Width), .Depth(Gap)
  ) u_full_second (
      .clk_i, .rst_ni, .en_i(en), .d_i(full_q), .q_o(full_second)
  );
  assign first_o = inverse_of(tag_end) ? full_q : serial_first_q;
  assign second_o = second_inverse_q ? serial_second_q : full_second;
endmodule
