// The product of two words as tiles of the device's multiplier (device_pkg), each registered behind it: on UltraScale+
// 12 DSP at 60 bits, 6 at 51. Latency 1 enabled cycle; the sum of the tiles is combinational behind the registers.
//
// Tiles on a diagonal lie side by side, so the sum has a row a diagonal and not one a tile. By default yosys would
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
  always_ff @(posedge clk_i) if (en_i) p_o <= (2 * Width)'(a_i) * (2 * Width)'(b_i);
`else
  localparam int unsigned ATiles = (Width + ATile - 1) / ATile;
  localparam int unsigned BTiles = (Width + BTile - 1) / BTile;
  localparam int unsigned Rows = ATiles + BTiles - 1;
  localparam int unsigned Span = ATiles * ATile + BTiles * BTile;
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
  logic [Span-1:0] sum;
  always_comb begin
    row = '0;
    for (int unsigned i = 0; i < ATiles; i++) begin
      for (int unsigned j = 0; j < BTiles; j++) begin
        row[j+ATiles-1-i][ATile*i+BTile*j+:ATile+BTile] = tile_q[i][j];
      end
    end
    sum = '0;
    for (int unsigned r = 0; r < Rows; r++) sum = sum + row[r];
  end
  assign p_o = sum[2*Width-1:0];
  logic unused;
  assign unused = ^sum[Span-1:2*Width];
`endif
endmodule
