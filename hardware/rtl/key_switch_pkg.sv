// Made by hardware/generate/key_switch_package.py.
// Key switching with 4 digits of one prime each: L = 3.
package key_switch_pkg;
  localparam int unsigned Digits = 4;
  localparam int unsigned Slots = 15;
  localparam int unsigned SlotWidth = 4;
  // Buffers of coefficients: of every digit, then of the two remainders modulo the special prime.
  localparam int unsigned Rows = 6;
  localparam int unsigned RowWidth = 3;
  localparam int unsigned PrimeWidth = 3;
  localparam int unsigned WidthA = 60;
  localparam int unsigned CountA = 4;
  localparam int unsigned SelWidthA = 2;
  localparam logic [75:0] ModuliA = 76'h5d280ba9250404a2880;
  localparam int unsigned WidthB = 51;
  localparam int unsigned CountB = 3;
  localparam int unsigned SelWidthB = 2;
  localparam logic [56:0] ModuliB = 57'hba901744020800;

  // Words of the schedule: positions and widths of their fields.
  localparam int unsigned WordWidth = 29;
  localparam int unsigned Valid = 0;
  localparam int unsigned Offset = 1;
  localparam int unsigned Inverse = 2;
  localparam int unsigned Sel = 3;
  localparam int unsigned Prime = 6;
  localparam int unsigned Source = 9;
  localparam int unsigned Row = 11;
  localparam int unsigned RowPrime = 14;
  localparam int unsigned Target = 17;
  localparam int unsigned TargetRow = 19;
  localparam int unsigned First = 22;
  localparam int unsigned Own = 23;
  localparam int unsigned OwnOffset = 24;
  localparam int unsigned OwnDigit = 25;
  localparam int unsigned OwnFirst = 28;
  localparam logic [1:0] FromInput = 2'd0, FromRow = 2'd1, FromSum = 2'd2;
  localparam logic [1:0] ToRow = 2'd0, ToSum = 2'd1, ToResult = 2'd2;

  function automatic logic [28:0] schedule_a(input logic [3:0] slot);
    unique case (slot)
      4'd0: schedule_a = 29'hd2a03;  // R1 mod q0
      4'd1: schedule_a = 29'h52203;  // R0 mod q0
      4'd2: schedule_a = 29'h42db19;  // N3 mod q4
      4'd3: schedule_a = 29'h5;  // I0
      4'd4: schedule_a = 29'h24b19;  // N1 mod q4
      4'd5: schedule_a = 29'h20319;  // N0 mod q4
      4'd6: schedule_a = 29'h29319;  // N2 mod q4
      4'd7: schedule_a = 29'h424a01;  // N1 mod q0
      4'd8: schedule_a = 29'h29201;  // N2 mod q0
      4'd9: schedule_a = 29'h2da01;  // N3 mod q0
      4'd10: schedule_a = 29'h2a1051d;  // S0, product of digit 1 modulo q1
      4'd11: schedule_a = 29'ha90d1d;  // S1, product of digit 0 modulo q0
      4'd12: schedule_a = 29'h52249;  // R0 mod q1
      4'd13: schedule_a = 29'hd2ad1;  // R1 mod q3
      4'd14: schedule_a = 29'hd2a49;  // R1 mod q1
      default: schedule_a = '0;
    endcase
  endfunction

  function automatic logic [2:0] select_a(input logic [2:0] prime);
    unique case (prime)
      3'd0: select_a = 3'd0;
      3'd1: select_a = 3'd1;
      3'd3: select_a = 3'd2;
      3'd4: select_a = 3'd3;
      default: select_a = '0;
    endcase
  endfunction

  function automatic logic [28:0] schedule_b(input logic [3:0] slot);
    unique case (slot)
      4'd0: schedule_b = 29'h18d8d5;  // I3
      4'd1: schedule_b = 29'h1690908d;  // I2, product of digit 3 modulo q3
      4'd2: schedule_b = 29'h14884845;  // I1, product of digit 2 modulo q2
      4'd3: schedule_b = 29'h429241;  // N2 mod q1
      4'd4: schedule_b = 29'h2da41;  // N3 mod q1
      4'd5: schedule_b = 29'h20241;  // N0 mod q1
      4'd6: schedule_b = 29'h24a89;  // N1 mod q2
      4'd7: schedule_b = 29'h2da89;  // N3 mod q2
      4'd8: schedule_b = 29'h20289;  // N0 mod q2
      4'd9: schedule_b = 29'h292d1;  // N2 mod q3
      4'd10: schedule_b = 29'h24ad1;  // N1 mod q3
      4'd11: schedule_b = 29'h202d1;  // N0 mod q3
      4'd12: schedule_b = 29'h52289;  // R0 mod q2
      4'd13: schedule_b = 29'h522d1;  // R0 mod q3
      4'd14: schedule_b = 29'hd2a89;  // R1 mod q2
      default: schedule_b = '0;
    endcase
  endfunction

  function automatic logic [2:0] select_b(input logic [2:0] prime);
    unique case (prime)
      3'd1: select_b = 3'd0;
      3'd2: select_b = 3'd1;
      3'd3: select_b = 3'd2;
      default: select_b = '0;
    endcase
  endfunction

  function automatic logic [59:0] modulus(input logic [2:0] prime);
    unique case (prime)
      3'd0: modulus = 60'd1152921504606584833;
      3'd1: modulus = 60'd2251799813554177;
      3'd2: modulus = 60'd2251799805165569;
      3'd3: modulus = 60'd2251799806345217;
      3'd4: modulus = 60'd1152921504598720513;
      default: modulus = '0;
    endcase
  endfunction

  // A residue is negative if its bits from 30 on are at least this.
  function automatic logic [30:0] threshold(input logic [2:0] prime);
    unique case (prime)
      3'd0: threshold = 31'd536870912;
      3'd1: threshold = 31'd1048576;
      3'd2: threshold = 31'd1048576;
      3'd3: threshold = 31'd1048576;
      3'd4: threshold = 31'd536870912;
      default: threshold = '0;
    endcase
  endfunction

  // The inverse of the special prime.
  function automatic logic [59:0] special_inverse(input logic [2:0] prime);
    unique case (prime)
      3'd0: special_inverse = 60'd345876597983525820;
      3'd1: special_inverse = 60'd794638407045436;
      3'd2: special_inverse = 60'd1035683310920781;
      3'd3: special_inverse = 60'd2090888873929382;
      default: special_inverse = '0;
    endcase
  endfunction

  // The modulus of a row modulo the prime it is converted to: {row prime, prime}.
  function automatic logic [59:0] row_modulus(input logic [5:0] pair);
    unique case (pair)
      6'd1: row_modulus = 60'd66846209;
      6'd2: row_modulus = 60'd4361813505;
      6'd3: row_modulus = 60'd3757833729;
      6'd4: row_modulus = 60'd7864320;
      6'd8: row_modulus = 60'd2251799813554177;
      6'd10: row_modulus = 60'd8388608;
      6'd11: row_modulus = 60'd7208960;
      6'd12: row_modulus = 60'd2251799813554177;
      6'd16: row_modulus = 60'd2251799805165569;
      6'd17: row_modulus = 60'd2251799805165569;
      6'd19: row_modulus = 60'd2251799805165569;
      6'd20: row_modulus = 60'd2251799805165569;
      6'd24: row_modulus = 60'd2251799806345217;
      6'd25: row_modulus = 60'd2251799806345217;
      6'd26: row_modulus = 60'd1179648;
      6'd28: row_modulus = 60'd2251799806345217;
      6'd32: row_modulus = 60'd1152921504598720513;
      6'd33: row_modulus = 60'd58981889;
      6'd34: row_modulus = 60'd4353949185;
      6'd35: row_modulus = 60'd3749969409;
      default: row_modulus = '0;
    endcase
  endfunction
endpackage
