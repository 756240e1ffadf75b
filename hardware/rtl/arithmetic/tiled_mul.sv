// The product of two words as tiles of 26 x 17 bits, one DSP48E2 each: 12 at 60 bits, 6 at 51. Combinational.
//
// By default yosys would split a 51-bit product into 9. PLAIN_PRODUCTS, for simulating large designs, computes the same
// product in one operation.
module tiled_mul #(
    parameter int unsigned Width = 60
) (
    input  logic [  Width-1:0] a_i,
    input  logic [  Width-1:0] b_i,
    output logic [2*Width-1:0] p_o
);
`ifdef PLAIN_PRODUCTS
  assign p_o = (2 * Width)'(a_i) * (2 * Width)'(b_i);
`else
  localparam int unsigned ATile = 26;
  localparam int unsigned BTile = 17;
  localparam int unsigned ATiles = (Width + ATile - 1) / ATile;
  localparam int unsigned BTiles = (Width + BTile - 1) / BTile;
  localparam int unsigned Tiles = ATiles * BTiles;
  logic [Tiles-1:0][2*Width-1:0] part;
  for (genvar i = 0; i < ATiles; i++) begin : gen_a
    for (genvar j = 0; j < BTiles; j++) begin : gen_b
      logic [ATile+BTile-1:0] product;
      logic [ATile-1:0] a;
      logic [BTile-1:0] b;
      assign a = ATile'(a_i >> ATile * i);
      assign b = BTile'(b_i >> BTile * j);
      assign product = (ATile + BTile)'(a) * (ATile + BTile)'(b);
      assign part[i*BTiles+j] = (2 * Width)'(product) << (ATile * i + BTile * j);
    end
  end
  always_comb begin
    p_o = '0;
    for (int unsigned t = 0; t < Tiles; t++) p_o = p_o + part[t];
  end
`endif
endmodule
