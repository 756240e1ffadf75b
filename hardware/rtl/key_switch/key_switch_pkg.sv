// Made by hardware/generate/key_switch_package.py.
// Key switching at L = 3, digits of 1.
package key_switch_pkg;
  localparam int unsigned Limbs = 4;
  // Primes of a digit, and special primes.
  localparam int unsigned Alpha = 1;
  localparam int unsigned Slots = 15;
  localparam int unsigned SlotWidth = 4;
  // Slots that a result is given, beside its own one, before it is read.
  localparam int unsigned Gap = 1;
  // Buffers of coefficients: of the ciphertext's primes, of both halves modulo the special ones.
  localparam int unsigned Rows = 6;
  localparam int unsigned RowWidth = 3;
  localparam int unsigned PrimeWidth = 3;
  localparam int unsigned ConversionWidth = 5;
  localparam int unsigned TermWidth = 1;
  localparam int unsigned QuotientWidth = 1;
  localparam int unsigned WidthA = 60;
  localparam int unsigned CountA = 4;
  localparam int unsigned SelWidthA = 2;
  localparam logic [75:0] ModuliA = 76'h5d280ba9250404a2880;
  localparam int unsigned WidthB = 51;
  localparam int unsigned CountB = 3;
  localparam int unsigned SelWidthB = 2;
  localparam logic [56:0] ModuliB = 57'hba901744020800;

  // Words of the schedule: positions and widths of their fields.
  localparam int unsigned WordWidth = 34;
  localparam int unsigned Valid = 0;
  localparam int unsigned Offset = 1;
  localparam int unsigned Inverse = 2;
  localparam int unsigned Sel = 3;
  localparam int unsigned Prime = 6;
  localparam int unsigned Source = 9;
  localparam int unsigned Row = 11;
  localparam int unsigned Half = 14;
  localparam int unsigned Target = 15;
  localparam int unsigned TargetRow = 17;
  localparam int unsigned First = 20;
  localparam int unsigned Own = 21;
  localparam int unsigned OwnOffset = 22;
  localparam int unsigned OwnPrime = 23;
  localparam int unsigned OwnFirst = 26;
  localparam int unsigned Conversion = 27;
  localparam int unsigned Active = 32;
  localparam int unsigned Wide = 33;
  localparam logic [1:0] FromInput = 2'd0, FromRow = 2'd1, FromSum = 2'd2;
  localparam logic [1:0] ToRow = 2'd0, ToSum = 2'd1, ToResult = 2'd2;

  // From a row to what the transform takes: modulus_raise, or modulus_convert with that many terms.
  function automatic int unsigned raise_latency(input int unsigned terms);
    raise_latency = terms == 1 ? 4 : 11 + terms;
  endfunction

  function automatic logic [33:0] schedule_a(input logic [3:0] slot);
    unique case (slot)
      4'd0: schedule_a = 34'h388036a03;  // R1 mod q0
      4'd1: schedule_a = 34'h388012203;  // R0 mod q0
      4'd2: schedule_a = 34'h180109b19;  // N3 mod q4
      4'd3: schedule_a = 34'h5;  // I0
      4'd4: schedule_a = 34'h140008b19;  // N1 mod q4
      4'd5: schedule_a = 34'h320008319;  // N0 mod q4
      4'd6: schedule_a = 34'h160009319;  // N2 mod q4
      4'd7: schedule_a = 34'h128108a01;  // N1 mod q0
      4'd8: schedule_a = 34'h148009201;  // N2 mod q0
      4'd9: schedule_a = 34'h168009a01;  // N3 mod q0
      4'd10: schedule_a = 34'ha8051d;  // S0, product of digit 1 modulo q1
      4'd11: schedule_a = 34'h2a451d;  // S1, product of digit 0 modulo q0
      4'd12: schedule_a = 34'h390012249;  // R0 mod q1
      4'd13: schedule_a = 34'h3a0036ad1;  // R1 mod q3
      4'd14: schedule_a = 34'h390036a49;  // R1 mod q1
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

  function automatic logic [33:0] schedule_b(input logic [3:0] slot);
    unique case (slot)
      4'd0: schedule_b = 34'h600d5;  // I3
      4'd1: schedule_b = 34'h5a4008d;  // I2, product of digit 3 modulo q3
      4'd2: schedule_b = 34'h5220045;  // I1, product of digit 2 modulo q2
      4'd3: schedule_b = 34'h150109241;  // N2 mod q1
      4'd4: schedule_b = 34'h170009a41;  // N3 mod q1
      4'd5: schedule_b = 34'h308008241;  // N0 mod q1
      4'd6: schedule_b = 34'h130008a89;  // N1 mod q2
      4'd7: schedule_b = 34'h178009a89;  // N3 mod q2
      4'd8: schedule_b = 34'h310008289;  // N0 mod q2
      4'd9: schedule_b = 34'h1580092d1;  // N2 mod q3
      4'd10: schedule_b = 34'h138008ad1;  // N1 mod q3
      4'd11: schedule_b = 34'h3180082d1;  // N0 mod q3
      4'd12: schedule_b = 34'h398012289;  // R0 mod q2
      4'd13: schedule_b = 34'h3a00122d1;  // R0 mod q3
      4'd14: schedule_b = 34'h398036a89;  // R1 mod q2
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

  // The inverse of the special primes' product.
  function automatic logic [59:0] special_inverse(input logic [2:0] prime);
    unique case (prime)
      3'd0: special_inverse = 60'd345876597983525820;
      3'd1: special_inverse = 60'd794638407045436;
      3'd2: special_inverse = 60'd1035683310920781;
      3'd3: special_inverse = 60'd2090888873929382;
      default: special_inverse = '0;
    endcase
  endfunction

  // What a conversion multiplies its terms with, modulo its target: {conversion, term}.
  function automatic logic [59:0] factor(input logic [5:0] index);
    unique case (index)
      default: factor = '0;
    endcase
  endfunction

  // What it subtracts, by quotient: multiples of the product of its sources' primes.
  function automatic logic [59:0] whole(input logic [5:0] index);
    unique case (index)
      6'd3: whole = 60'd66846209;
      6'd5: whole = 60'd4361813505;
      6'd7: whole = 60'd3757833729;
      6'd9: whole = 60'd7864320;
      6'd11: whole = 60'd2251799813554177;
      6'd13: whole = 60'd8388608;
      6'd15: whole = 60'd7208960;
      6'd17: whole = 60'd2251799813554177;
      6'd19: whole = 60'd2251799805165569;
      6'd21: whole = 60'd2251799805165569;
      6'd23: whole = 60'd2251799805165569;
      6'd25: whole = 60'd2251799805165569;
      6'd27: whole = 60'd2251799806345217;
      6'd29: whole = 60'd2251799806345217;
      6'd31: whole = 60'd1179648;
      6'd33: whole = 60'd2251799806345217;
      6'd35: whole = 60'd1152921504598720513;
      6'd37: whole = 60'd58981889;
      6'd39: whole = 60'd4353949185;
      6'd41: whole = 60'd3749969409;
      default: whole = '0;
    endcase
  endfunction
endpackage
