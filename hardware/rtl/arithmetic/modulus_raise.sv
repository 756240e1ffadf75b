// Converts residues modulo one prime to another: the MOD unit, one word per cycle. Latency 4 enabled cycles.
//
// With `centre_i`, y_i represents y or, if its bits from 30 on reach `threshold_i`, y - q_row, the software's centred
// representative. `row_modulus_i` is q_row modulo the target. Without it y_i is already a residue of the target and is
// only scaled. y is below 2^60 and the target above 2^50, so one fold and one subtraction make it canonical. The result
// is scaled by 2^shift.
module modulus_raise #(
    parameter int unsigned Width = 60,
    parameter int unsigned Count = 1,
    parameter int unsigned SelWidth = 1,
    parameter logic [Count*sparse_moduli_pkg::FormWidth-1:0] Moduli = {Count{sparse_moduli_pkg::Boosted}}
) (
    input  logic                clk_i,
    input  logic                en_i,
    input  logic                centre_i,
    input  logic [        30:0] threshold_i,
    input  logic [        59:0] row_modulus_i,
    input  logic [SelWidth-1:0] sel_i,
    input  logic [        59:0] y_i,
    output logic [   Width-1:0] x_o
);
  // A scaled 60-bit word: shift is 60 less the target's bits on 60-bit multipliers, 0 on 51-bit ones.
  localparam int unsigned High = 9;
  localparam int unsigned Wide = Width + High;

  function automatic logic [Width-1:0] modulus(input logic [SelWidth-1:0] sel);
    modulus = '0;
    for (int unsigned i = 0; i < Count; i++) begin
      if (Count == 1 || sel == SelWidth'(i)) begin
        modulus = Width'(sparse_moduli_pkg::modulus(Moduli[19*i+:19], Width));
      end
    end
  endfunction

  function automatic logic [Wide-1:0] scaled(input logic [SelWidth-1:0] sel, input logic [59:0] y);
    scaled = '0;
    for (int unsigned i = 0; i < Count; i++) begin
      if (Count == 1 || sel == SelWidth'(i)) scaled = Wide'(y) << Moduli[19*i+:6];
    end
  endfunction

  logic [Wide-1:0] scaled1_q;
  logic [Width:0] folded1, folded2_q, reduced2;
  logic [Width-1:0] canonical3_q, correction1_q, correction2_q, correction3_q, difference3;
  logic [SelWidth-1:0] sel1_q, sel2_q, sel3_q;

  sparse_fold #(
      .Width(Width), .HighWidth(High), .SumWidth(Width + 1), .Count(Count), .SelWidth(SelWidth), .Moduli(Moduli)
  ) u_fold (
      .sel_i(sel1_q), .high_i(scaled1_q[Wide-1:Width]), .low_i(scaled1_q[Width-1:0]), .r_o(folded1)
  );
  assign reduced2 = folded2_q - {1'b0, modulus(sel2_q)};
  mod_add #(
      .Width(Width), .Subtract(1'b1)
  ) u_difference (
      .modulus_i(modulus(sel3_q)), .a_i(canonical3_q), .b_i(correction3_q), .r_o(difference3)
  );

  always_ff @(posedge clk_i) begin
    if (en_i) begin
      scaled1_q <= scaled(sel_i, y_i);
      correction1_q <= centre_i && {1'b0, y_i[59:30]} >= threshold_i ? Width'(scaled(sel_i, row_modulus_i)) : '0;
      folded2_q <= folded1;
      canonical3_q <= reduced2[Width] ? folded2_q[Width-1:0] : reduced2[Width-1:0];
      x_o <= difference3;
      {correction2_q, correction3_q} <= {correction1_q, correction2_q};
      {sel1_q, sel2_q, sel3_q} <= {sel_i, sel1_q, sel2_q};
    end
  end
endmodule
