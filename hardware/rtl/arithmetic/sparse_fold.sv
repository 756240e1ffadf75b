// One fold of a reduction modulo a sparse prime: r_o = high_i c 2^shift + low_i, which is high_i 2^Width + low_i modulo
// q 2^shift.
//
// Combinational: adds three operands, each selected from constant shifts of high_i, and low_i. The caller ensures that
// the sum fits. PLAIN_PRODUCTS is for simulating large designs: the same sum in fewer operations, which
// dv/test_arithmetic.py compares with the shifts.
module sparse_fold #(
    parameter int unsigned Width = 60,
    parameter int unsigned HighWidth = 60,
    parameter int unsigned SumWidth = 97,
    parameter int unsigned Count = 1,
    parameter int unsigned SelWidth = 1,
    parameter logic [Count*sparse_moduli_pkg::FormWidth-1:0] Moduli = {Count{sparse_moduli_pkg::Boosted}}
) (
    input  logic [ SelWidth-1:0] sel_i,
    input  logic [HighWidth-1:0] high_i,
    input  logic [    Width-1:0] low_i,
    output logic [ SumWidth-1:0] r_o
);
`ifdef PLAIN_PRODUCTS
  logic [63:0] c;
  always_comb begin
    c = '0;
    for (int unsigned i = 0; i < Count; i++) begin
      if (Count == 1 || sel_i == SelWidth'(i)) begin
        c = (64'd1 << Width) - 64'(sparse_moduli_pkg::modulus(Moduli[19*i+:19], Width));
      end
    end
  end
  assign r_o = SumWidth'(high_i) * SumWidth'(c) + SumWidth'(low_i);
`else
  logic [SumWidth-1:0] h, first, second, third;
  assign h = SumWidth'(high_i);
  always_comb begin
    {first, second, third} = '0;
    for (int unsigned i = 0; i < Count; i++) begin
      if (Count == 1 || sel_i == SelWidth'(i)) begin
        first  = h << (Moduli[19*i+13+:6] + Moduli[19*i+:6]);
        second = h << (Moduli[19*i+7+:6] + Moduli[19*i+:6]);
        if (Moduli[19*i+6]) second = -second;
        third = h << Moduli[19*i+:6];
      end
    end
  end
  assign r_o = first + second - third + SumWidth'(low_i);
`endif
endmodule
