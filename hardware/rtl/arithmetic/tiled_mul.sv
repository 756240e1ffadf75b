// The product of two words as tiles of the device's multiplier (device_pkg), on UltraScale+ 12 DSP at 60 bits, 6 at 51.
// Latency 2 enabled cycles: tiles, then two words with their sum, which is combinational behind the second register.
//
// Tiles on a diagonal lie side by side and are one row. Rows become two words without carries. By default yosys would
// split a 51-bit product into 9. PLAIN_PRODUCTS, for simulating large designs, computes the same product in one
// operation.
module tiled_mul #(
    parameter int unsigned Width = 60,
    parameter int unsigned ATile = device_pkg::ATile,
    parameter int unsigned BTile = device_pkg::BTile
) (
    input  logic               clk_i,
    input  logic               en_i,
    input  logic [  Width-1:0] a_i,
    input  logic [  Width-1:0] b_i,
    output logic [2*Width-1:0] p_o
);
`ifdef PLAIN_PRODUCTS
  logic [2*Width-1:0] product_q;
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      product_q <= (2 * Width)'(a_i) * (2 * Width)'(b_i);
      p_o <= product_q;
    end
  end
`else
  localparam int unsigned ATiles = (Width + ATile - 1) / ATile;
  localparam int unsigned BTiles = (Width + BTile - 1) / BTile;
  localparam int unsigned Rows = ATiles + BTiles - 1;
  localparam int unsigned Span = ATiles * ATile + BTiles * BTile;
  typedef logic [2*Width-1:0] word_t;

  logic [ATiles-1:0][BTiles-1:0][ATile+BTile-1:0] tile_q;
  for (genvar i = 0; i < ATiles; i++) begin : gen_a
    for (genvar j = 0; j < BTiles; j++) begin : gen_b
      logic [ATile-1:0] a;
      logic [BTile-1:0] b;
      assign a = ATile'(a_i >> ATile * i);
      assign b = BTile'(b_i >> BTile * j);
      always_ff @(posedge clk_i) if (en_i) tile_q[i][j] <= (ATile + BTile)'(a) * (ATile + BTile)'(b);
    end
  end

  // Row r holds the tiles with j - i = r - (ATiles - 1).
  logic [Rows-1:0][Span-1:0] row;
  always_comb begin
    row = '0;
    for (int unsigned i = 0; i < ATiles; i++) begin
      for (int unsigned j = 0; j < BTiles; j++) begin
        row[j+ATiles-1-i][ATile*i+BTile*j+:ATile+BTile] = tile_q[i][j];
      end
    end
  end

  // Rows left after a number of levels, each of which makes two words of three.
  function automatic int unsigned left(input int unsigned levels);
    left = Rows;
    for (int unsigned k = 0; k < levels; k++) left = left - left / 3;
  endfunction
  function automatic int unsigned levels_for();
    levels_for = 0;
    for (int unsigned k = 0; k < Rows; k++) if (left(k) > 2) levels_for = k + 1;
  endfunction
  localparam int unsigned Levels = levels_for();
  logic [Levels:0][Rows-1:0][2*Width-1:0] level;
  for (genvar r = 0; r < Rows; r++) begin : gen_row
    assign level[0][r] = word_t'(row[r]);
  end
  for (genvar k = 0; k < Levels; k++) begin : gen_level
    localparam int unsigned Threes = left(k) / 3;
    for (genvar t = 0; t < Threes; t++) begin : gen_three
      word_t x, y, z;
      assign x = level[k][3*t];
      assign y = level[k][3*t+1];
      assign z = level[k][3*t+2];
      assign level[k+1][2*t] = x ^ y ^ z;
      assign level[k+1][2*t+1] = (x & y | x & z | y & z) << 1;
    end
    for (genvar t = 2 * Threes; t < Rows; t++) begin : gen_rest
      if (t + Threes < Rows) begin : gen_kept
        assign level[k+1][t] = level[k][t+Threes];
      end else begin : gen_none
        assign level[k+1][t] = '0;
      end
    end
  end

  word_t first_q, second_q;
  always_ff @(posedge clk_i) begin
    if (en_i) {first_q, second_q} <= {level[Levels][0], Rows > 1 ? level[Levels][Rows > 1] : '0};
  end
  assign p_o = first_q + second_q;
`endif
endmodule
