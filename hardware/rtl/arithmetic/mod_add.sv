// Sum or difference of residues: r_o = a_i + b_i or a_i - b_i modulo modulus_i. Combinational.
//
// Operands are below the modulus, so one conditional correction makes the result canonical. See doc/blocks.md.
module mod_add #(
    parameter int unsigned Width = 60,
    parameter bit Subtract = 1'b0
) (
    input  logic [Width-1:0] modulus_i,
    input  logic [Width-1:0] a_i,
    input  logic [Width-1:0] b_i,
    output logic [Width-1:0] r_o
);
  logic [Width:0] plain, corrected;

  if (Subtract) begin : g_subtract
    assign plain = {1'b0, a_i} - {1'b0, b_i};
    assign corrected = plain + {1'b0, modulus_i};
    // The top bit is the borrow.
    assign r_o = plain[Width] ? corrected[Width-1:0] : plain[Width-1:0];
  end else begin : g_add
    assign plain = {1'b0, a_i} + {1'b0, b_i};
    assign corrected = plain - {1'b0, modulus_i};
    assign r_o = corrected[Width] ? plain[Width-1:0] : corrected[Width-1:0];
  end
endmodule
