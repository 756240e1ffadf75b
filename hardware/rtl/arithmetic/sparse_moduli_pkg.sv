// Moduli whose reduction needs no multiplier: q = 2^Width - c 2^shift with c = 2^high + 2^low - 1 or 2^high - 2^low -
// 1.
//
// A prime narrower than the multiplier is used in scaled form: with q = 2^51 - c and Width = 60, residues x are kept as
// 2^9 x modulo 2^9 q = 2^60 - 2^9 c. Sums, differences and products with unscaled constants stay in that form. See
// doc/blocks.md. A form is one word, {high, low, negative, shift}, and a list of forms a vector of such words, because
// yosys accepts no structures as parameters.
package sparse_moduli_pkg;
  localparam int unsigned FormWidth = 19;
  localparam int unsigned MaxWidth = 60;
  // q = 2^60 - 2^18 + 1.
  localparam logic [FormWidth-1:0] Boosted = {6'd17, 6'd17, 1'b0, 6'd0};

  // q 2^shift for a multiplier of that width.
  function automatic logic [MaxWidth:0] modulus(input logic [FormWidth-1:0] form, input int unsigned width);
    modulus = (61'd1 << width) - (((61'd1 << form[18:13]) + (form[6] ? -(61'd1 << form[12:7]) : 61'd1 << form[12:7])
                                   - 61'd1) << form[5:0]);
  endfunction
endpackage
