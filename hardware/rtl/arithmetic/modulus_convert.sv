// Converts residues modulo several primes to another prime: the MOD unit for digits of several primes. Latency 11 +
// Terms enabled cycles.
//
// x = sum_t y_t factor_t - whole_v modulo the target, where v = round(sum y_t / q_t), with t running over the terms
// that are `active_i`, and whole_v is v times the product of the q_t. With y_t = x (Q / q_t)^-1 mod q_t this is the
// software's centred representative of x: it adds the 18 highest bits of every y_t, of 60 or (unless `wide_i`) 51, and
// rounds (share() in generate/key_switch_package.py). An inactive term with a zero factor is absent; without active
// terms x = sum_t y_t factor_t.
//
// `sel_i` is the target. `quotient_o` is v as soon as y arrives, and requires whole_v in the same cycle. y_t is below
// 2^60, factors and wholes are canonical and not scaled; the result is canonical and scaled by 2^shift. One multiplier
// per term.
module modulus_convert #(
    parameter int unsigned Width = 60,
    parameter int unsigned Terms = 2,
    parameter int unsigned Count = 1,
    parameter int unsigned SelWidth = 1,
    parameter int unsigned FoldWidth = 36,
    parameter logic [Count*sparse_moduli_pkg::FormWidth-1:0] Moduli = {Count{sparse_moduli_pkg::Boosted}},
    localparam int unsigned QuotientWidth = $clog2(Terms + 1)
) (
    input  logic                     clk_i,
    input  logic                     rst_ni,
    input  logic                     en_i,
    input  logic [     SelWidth-1:0] sel_i,
    input  logic [     Terms*60-1:0] y_i,
    input  logic [        Terms-1:0] active_i,
    input  logic [        Terms-1:0] wide_i,
    input  logic [     Terms*60-1:0] factors_i,
    input  logic [             59:0] whole_i,
    output logic [QuotientWidth-1:0] quotient_o,
    output logic [        Width-1:0] x_o
);
  localparam int unsigned Fraction = 18;
  localparam int unsigned SumWidth = Fraction + QuotientWidth;

  function automatic logic [Width-1:0] modulus(input logic [SelWidth-1:0] sel);
    modulus = '0;
    for (int unsigned i = 0; i < Count; i++) begin
      if (Count == 1 || sel == SelWidth'(i)) modulus = Width'(sparse_moduli_pkg::modulus(Moduli[19*i+:19], Width));
    end
  endfunction
  function automatic logic [Width-1:0] scaled(input logic [SelWidth-1:0] sel, input logic [59:0] x);
    scaled = '0;
    for (int unsigned i = 0; i < Count; i++) begin
      if (Count == 1 || sel == SelWidth'(i)) scaled = Width'(x) << Moduli[19*i+:6];
    end
  endfunction

  // ---- The quotient ----
  logic [SumWidth-1:0] sum;
  always_comb begin
    sum = SumWidth'(1) << (Fraction - 1);
    for (int unsigned t = 0; t < Terms; t++) begin
      if (active_i[t]) sum = sum + SumWidth'(wide_i[t] ? y_i[60*t+42+:Fraction] : y_i[60*t+33+:Fraction]);
    end
  end
  assign quotient_o = sum[Fraction+:QuotientWidth];

  // ---- Terms: made canonical, then multiplied ----
  logic [SelWidth-1:0] sel4;
  logic [Terms-1:0][Width-1:0] products;
  delay_line #(
      .Width(SelWidth), .Depth(4)
  ) u_sel4 (
      .clk_i, .rst_ni, .en_i, .d_i(sel_i), .q_o(sel4)
  );
  for (genvar t = 0; t < Terms; t++) begin : gen_term
    logic [Width-1:0] term4, factor4;
    modulus_raise #(
        .Width(Width), .Count(Count), .SelWidth(SelWidth), .Moduli(Moduli)
    ) u_raise (
        .clk_i, .en_i,
        .centre_i(1'b0),
        .threshold_i('0),
        .row_modulus_i('0),
        .sel_i,
        .y_i(y_i[60*t+:60]),
        .x_o(term4)
    );
    delay_line #(
        .Width(Width), .Depth(4)
    ) u_factor (
        .clk_i, .rst_ni, .en_i, .d_i(Width'(factors_i[60*t+:60])), .q_o(factor4)
    );
    mod_mul_sparse #(
        .Width(Width), .Count(Count), .SelWidth(SelWidth), .FoldWidth(FoldWidth), .Moduli(Moduli)
    ) u_product (
        .clk_i, .en_i, .sel_i(sel4), .a_i(term4), .b_i(factor4), .c_o(products[t])
    );
  end

  // ---- Their sum, one term per cycle, less the multiple of the sources' product ----
  logic [Width-1:0] whole11;
  logic [Terms-1:0][SelWidth-1:0] sel;
  logic [Terms-1:0][Width-1:0] partial_q;
  delay_line #(
      .Width(SelWidth + Width), .Depth(11)
  ) u_whole (
      .clk_i, .rst_ni, .en_i, .d_i({sel_i, scaled(sel_i, whole_i)}), .q_o({sel[0], whole11})
  );
  for (genvar t = 0; t < Terms; t++) begin : gen_partial
    logic [Width-1:0] partial;
    if (t == 0) begin : gen_first
      mod_add #(
          .Width(Width), .Subtract(1'b1)
      ) u_difference (
          .modulus_i(modulus(sel[0])), .a_i(products[0]), .b_i(whole11), .r_o(partial)
      );
    end else begin : gen_next
      logic [Width-1:0] term;
      delay_line #(
          .Width(Width), .Depth(t)
      ) u_term (
          .clk_i, .rst_ni, .en_i, .d_i(products[t]), .q_o(term)
      );
      always_ff @(posedge clk_i) if (en_i) sel[t] <= sel[t-1];
      mod_add #(
          .Width(Width)
      ) u_sum (
          .modulus_i(modulus(sel[t])), .a_i(partial_q[t-1]), .b_i(term), .r_o(partial)
      );
    end
    always_ff @(posedge clk_i) if (en_i) partial_q[t] <= partial;
  end
  assign x_o = partial_q[Terms-1];
endmodule
