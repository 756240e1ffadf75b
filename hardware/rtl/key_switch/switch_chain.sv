// One of the two chains of key_switch: the source of a slot's words, the transform, and the destination of the result.
//
// Source: the input port (INTT of a digit's prime); row buffers through modulus_raise or, for digits of several primes,
// modulus_convert (NTT); or a sum (INTT of a half modulo a special prime). Result: a row buffer; multiply-accumulate
// with the key; or the division by the special primes and the addition of the ciphertext's own half. While an inverse
// transform runs, whose result needs no multiplier, the chain also computes the product of a digit with the key modulo
// its own prime. See doc/key_switch.md for the times 'x' and 'o'.
module switch_chain #(
    parameter bit First = 1'b1,  // chain A
    parameter int unsigned LogN = 16,
    parameter bit FromMemory = 1'b0,  // twiddle factors; otherwise they are made
    parameter Tables = "tables-a",
    localparam int unsigned LogLanes = ntt_pkg::log_lanes(LogN),
    localparam int unsigned Lanes = 1 << LogLanes,
    localparam int unsigned TimeWidth = LogN - LogLanes,
    localparam int unsigned PW = key_switch_pkg::PrimeWidth,
    localparam int unsigned RW = key_switch_pkg::RowWidth,
    localparam int unsigned Terms = key_switch_pkg::Alpha,
    // Tag of a beat: time, slot, {current frame's switch valid, previous one's, number of the current one}.
    localparam int unsigned TagWidth = TimeWidth + key_switch_pkg::SlotWidth + 4
) (
    input logic clk_i,
    input logic rst_ni,
    input logic en_next_i,  // enable of the next cycle
    input logic [TagWidth-1:0] tag_i,

    // Source: at x a read is requested, one enabled cycle later its word is there. The need of the input port is known
    // two cycles before, at w.
    output logic                 w_input_o,
    output logic                 x_input_o,
    output logic [TimeWidth-1:0] x_time_o,
    output logic                 x_sum_o,
    output logic                 x_half_o,
    output logic [       PW-1:0] x_prime_o,
    output logic                 x1_input_o,
    output logic [       PW-1:0] x1_prime_o,
    output logic [          1:0] x1_id_o,
    output logic [       RW-1:0] x1_row_o,
    input  logic [ Lanes*60-1:0] x1_input_i,
    input  logic [Terms*Lanes*60-1:0] x1_row_i,  // the row asked for and those after it
    input  logic [ Lanes*60-1:0] x1_sum_i,

    // Result: at e, before o0, reads of a digit's input and of a sum to divide are requested; at o1 rows are written.
    output logic [TimeWidth-1:0] e_time_o,
    output logic [       PW-1:0] e_prime_o,
    output logic [          1:0] e_id_o,
    output logic                 e_result_o,
    output logic                 e_half_o,
    input  logic [ Lanes*60-1:0] o0_own_i,
    input  logic [ Lanes*60-1:0] o0_sum_i,
    output logic [TimeWidth-1:0] o1_time_o,
    output logic                 o1_row_write_o,
    output logic [       RW-1:0] o1_row_o,
    output logic [ Lanes*60-1:0] o1_words_o,
    // Key and addend, needed at o1 and o8; the need is known two cycles before.
    output logic                 e_key_o,
    output logic                 o0_key_o,
    output logic                 o1_key_o,
    output logic [       PW-1:0] o1_prime_o,
    output logic [          1:0] o1_id_o,
    input  logic [2*Lanes*60-1:0] o1_key_i,
    output logic                 o6_addend_o,
    output logic                 o7_addend_o,
    output logic                 o8_addend_o,
    output logic [       PW-1:0] o8_prime_o,
    output logic [          1:0] o8_id_o,
    input  logic [ Lanes*60-1:0] o8_addend_i,
    // Sums are read at o7, there at o8, written at o10. A result leaves at o10.
    output logic                 o7_sum_o,
    output logic                 o7_first_o,
    output logic [       PW-1:0] o7_prime_o,
    output logic [          1:0] o7_id_o,
    output logic [TimeWidth-1:0] o7_time_o,
    input  logic [2*Lanes*60-1:0] o8_sum_i,
    output logic [2*Lanes*60-1:0] o10_words_o,
    output logic [TimeWidth-1:0] o10_time_o,
    output logic [       PW-1:0] o10_prime_o,
    output logic                 o10_sum_o,
    output logic                 o10_result_o,
    output logic                 o10_half_o,
    output logic [          1:0] o10_id_o
);
  localparam int unsigned Width = First ? key_switch_pkg::WidthA : key_switch_pkg::WidthB;
  localparam int unsigned Count = First ? key_switch_pkg::CountA : key_switch_pkg::CountB;
  localparam int unsigned SelWidth = First ? key_switch_pkg::SelWidthA : key_switch_pkg::SelWidthB;
  localparam int unsigned FoldWidth = First ? 37 : 28;
  localparam logic [19*Count-1:0] Moduli =
      First ? (19*Count)'(key_switch_pkg::ModuliA) : (19*Count)'(key_switch_pkg::ModuliB);
  localparam int unsigned WW = key_switch_pkg::WordWidth;
  localparam int unsigned SW = key_switch_pkg::SlotWidth;
  localparam int unsigned Lead = ntt_pkg::lead(LogN);
  localparam int unsigned Conversion = key_switch_pkg::raise_latency(Terms);
  localparam int unsigned CW = key_switch_pkg::ConversionWidth;
  localparam int unsigned TW = key_switch_pkg::TermWidth;
  localparam int unsigned QW = key_switch_pkg::QuotientWidth;

  function automatic logic [WW-1:0] schedule(input logic [SW-1:0] slot);
    schedule = First ? key_switch_pkg::schedule_a(slot) : key_switch_pkg::schedule_b(slot);
  endfunction
  function automatic logic [SelWidth-1:0] select(input logic [PW-1:0] prime);
    select = SelWidth'(First ? key_switch_pkg::select_a(prime) : key_switch_pkg::select_b(prime));
  endfunction
  function automatic logic [Width-1:0] modulus(input logic [SelWidth-1:0] sel);
    modulus = '0;
    for (int unsigned i = 0; i < Count; i++) begin
      if (sel == SelWidth'(i)) modulus = Width'(sparse_moduli_pkg::modulus(Moduli[19*i+:19], Width));
    end
  endfunction
  // Residues outside of the transform are not scaled.
  function automatic logic [Width-1:0] scaled(input logic [SelWidth-1:0] sel, input logic [59:0] x);
    scaled = '0;
    for (int unsigned i = 0; i < Count; i++) if (sel == SelWidth'(i)) scaled = Width'(x) << Moduli[19*i+:6];
  endfunction
  function automatic logic [59:0] plain(input logic [SelWidth-1:0] sel, input logic [Width-1:0] x);
    plain = '0;
    for (int unsigned i = 0; i < Count; i++) if (sel == SelWidth'(i)) plain = 60'(x >> Moduli[19*i+:6]);
  endfunction

  // {valid, number of the switch} of an operation: of this frame's switch or of the previous one.
  function automatic logic [2:0] member(input logic offset, input logic [3:0] flags);
    member = offset ? {flags[2], flags[1:0] - 2'd1} : {flags[3], flags[1:0]};
  endfunction

  // ---- Copies of the enable: tags, source, result, lanes ----
  logic en, source_en, result_en;
  logic [Lanes-1:0] lane_en;
  enable_copy u_enable (
      .clk_i, .rst_ni, .en_next_i, .en_o(en)
  );
  enable_copy u_source_enable (
      .clk_i, .rst_ni, .en_next_i, .en_o(source_en)
  );
  enable_copy u_result_enable (
      .clk_i, .rst_ni, .en_next_i, .en_o(result_en)
  );
  for (genvar l = 0; l < Lanes; l++) begin : gen_enable
    enable_copy u_lane_enable (
        .clk_i, .rst_ni, .en_next_i, .en_o(lane_en[l])
    );
  end

  // ---- Source ----
  // Words of the schedule are registered before anything is decided by them.
  logic [TagWidth-1:0] tag_v;
  logic [WW-1:0] word_v, word_w_q, word_x_q, word_x1_q, word_x2_q;
  logic [2:0] member_w_q, member_x_q, member_x1_q;
  logic [TimeWidth-1:0] time_w_q;
  delay_line #(
      .Width(TagWidth), .Depth(Lead - 4 - Conversion), .Cleared(1'b1)
  ) u_tag_v (
      .clk_i, .rst_ni, .en_i(en), .d_i(tag_i), .q_o(tag_v)
  );
  assign word_v = schedule(tag_v[4+:SW]);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {word_w_q, member_w_q, time_w_q, word_x_q, member_x_q, x_time_o} <= '0;
    end else if (en) begin
      word_w_q <= word_v;
      member_w_q <= member(word_v[key_switch_pkg::Offset], tag_v[3:0]);
      time_w_q <= tag_v[TagWidth-1-:TimeWidth];
      {word_x_q, member_x_q, x_time_o} <= {word_w_q, member_w_q, time_w_q};
    end
  end
  assign w_input_o = word_w_q[key_switch_pkg::Valid] && member_w_q[2] &&
      word_w_q[key_switch_pkg::Source+:2] == key_switch_pkg::FromInput;
  assign x_sum_o = word_x_q[key_switch_pkg::Valid] && member_x_q[2] &&
      word_x_q[key_switch_pkg::Source+:2] == key_switch_pkg::FromSum;
  assign x_input_o = word_x_q[key_switch_pkg::Valid] && member_x_q[2] &&
      word_x_q[key_switch_pkg::Source+:2] == key_switch_pkg::FromInput;
  assign x_half_o = word_x_q[key_switch_pkg::Half];
  assign x_prime_o = word_x_q[key_switch_pkg::Prime+:PW];

  logic [Terms*Lanes*60-1:0] source_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      word_x1_q   <= '0;
      member_x1_q <= '0;
    end else if (en) begin
      word_x1_q   <= word_x_q;
      member_x1_q <= member_x_q;
    end
  end
  assign x1_input_o = word_x1_q[key_switch_pkg::Valid] && member_x1_q[2] &&
      word_x1_q[key_switch_pkg::Source+:2] == key_switch_pkg::FromInput;
  assign x1_prime_o = word_x1_q[key_switch_pkg::Prime+:PW];
  assign x1_id_o = member_x1_q[1:0];
  assign x1_row_o = word_x1_q[key_switch_pkg::Row+:RW];
  always_ff @(posedge clk_i) if (en) word_x2_q <= word_x1_q;
  always_ff @(posedge clk_i) begin
    if (source_en) begin
      unique case (word_x1_q[key_switch_pkg::Source+:2])
        key_switch_pkg::FromInput: source_q <= (Terms * Lanes * 60)'(x1_input_i);
        key_switch_pkg::FromRow: source_q <= x1_row_i;
        default: source_q <= (Terms * Lanes * 60)'(x1_sum_i);
      endcase
    end
  end

  logic [PW-1:0] prime_x2;
  logic [CW-1:0] conversion_x2;
  logic [Terms-1:0] active_x2, wide_x2;
  assign prime_x2 = word_x2_q[key_switch_pkg::Prime+:PW];
  assign conversion_x2 = word_x2_q[key_switch_pkg::Conversion+:CW];
  assign active_x2 = word_x2_q[key_switch_pkg::Active+:Terms];
  assign wide_x2 = word_x2_q[key_switch_pkg::Wide+:Terms];
  logic [Lanes*Width-1:0] raised, transformed;
  if (Terms == 1) begin : gen_raise
    // The centred representative is negative if the residue's highest of 60 or 51 bits is set.
    for (genvar l = 0; l < Lanes; l++) begin : gen_lane
      modulus_raise #(
          .Width(Width), .Count(Count), .SelWidth(SelWidth), .Moduli(Moduli)
      ) u_raise (
          .clk_i, .en_i(lane_en[l]),
          .centre_i(active_x2[0]),
          .threshold_i(wide_x2[0] ? 31'd1 << 29 : 31'd1 << 20),
          .row_modulus_i(key_switch_pkg::whole({conversion_x2, QW'(1)})),
          .sel_i(select(prime_x2)),
          .y_i(source_q[60*l+:60]),
          .x_o(raised[Width*l+:Width])
      );
    end
  end else begin : gen_convert
    logic [Terms*60-1:0] factors;
    for (genvar t = 0; t < Terms; t++) begin : gen_factor
      assign factors[60*t+:60] = key_switch_pkg::factor({conversion_x2, TW'(t)});
    end
    for (genvar l = 0; l < Lanes; l++) begin : gen_lane
      logic [Terms*60-1:0] y;
      logic [QW-1:0] quotient;
      for (genvar t = 0; t < Terms; t++) begin : gen_term
        assign y[60*t+:60] = source_q[60*(Lanes*t+l)+:60];
      end
      modulus_convert #(
          .Width(Width), .Terms(Terms), .Count(Count), .SelWidth(SelWidth), .FoldWidth(FoldWidth), .Moduli(Moduli)
      ) u_convert (
          .clk_i, .rst_ni, .en_i(lane_en[l]),
          .sel_i(select(prime_x2)),
          .y_i(y),
          .active_i(active_x2),
          .wide_i(wide_x2),
          .factors_i(factors),
          .whole_i(key_switch_pkg::whole({conversion_x2, quotient})),
          .quotient_o(quotient),
          .x_o(raised[Width*l+:Width])
      );
    end
  end

  // ---- Transform ----
  logic [WW-1:0] word_0;
  logic [SW+3:0] user_f;
  logic [TimeWidth-1:0] time_f;
  assign word_0 = schedule(tag_i[4+:SW]);
  ntt_pipe #(
      .Width(Width), .LogN(LogN), .Count(Count), .SelWidth(SelWidth), .UserWidth(SW + 4),
      .FoldWidth(FoldWidth), .Moduli(Moduli), .FromMemory(FromMemory), .Tables(Tables)
  ) u_pipe (
      .clk_i, .rst_ni, .en_next_i,
      .inverse_i(word_0[key_switch_pkg::Inverse]),
      .sel_i(SelWidth'(word_0[key_switch_pkg::Sel+:3])),
      .time_i(tag_i[TagWidth-1-:TimeWidth]),
      .user_i(tag_i[SW+3:0]),
      .data_i(raised),
      .time_o(time_f),
      .user_o(user_f),
      .data_o(transformed)
  );

  // ---- Result ----
  // The tag comes two cycles before the words: its word of the schedule is registered, then memories are addressed.
  logic [WW-1:0] word_f, word_e_q, word_o0_q;
  logic [2:0] member_e_q, own_member_e_q, member_o0_q, own_member_o0_q;
  logic [TimeWidth-1:0] time_o0_q;
  logic valid_o0, own_o0, result_o0, sum_o0;
  logic [1:0] id_o0;
  logic [PW-1:0] prime_o0;
  assign word_f = schedule(user_f[4+:SW]);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {word_e_q, member_e_q, own_member_e_q, e_time_o} <= '0;
      {word_o0_q, member_o0_q, own_member_o0_q, time_o0_q} <= '0;
    end else if (en) begin
      word_e_q <= word_f;
      member_e_q <= member(word_f[key_switch_pkg::Offset], user_f[3:0]);
      own_member_e_q <= member(word_f[key_switch_pkg::OwnOffset], user_f[3:0]);
      e_time_o <= time_f;
      {word_o0_q, member_o0_q, own_member_o0_q, time_o0_q} <= {word_e_q, member_e_q, own_member_e_q, e_time_o};
    end
  end
  // Without a product of its own, the operation's own prime and switch.
  function automatic logic [PW-1:0] prime_of(input logic [WW-1:0] word);
    prime_of = word[key_switch_pkg::Own] ? word[key_switch_pkg::OwnPrime+:PW] : word[key_switch_pkg::Prime+:PW];
  endfunction
  assign e_prime_o = prime_of(word_e_q);
  assign e_id_o = word_e_q[key_switch_pkg::Own] ? own_member_e_q[1:0] : member_e_q[1:0];
  assign e_result_o = word_e_q[key_switch_pkg::Valid] && member_e_q[2] &&
      word_e_q[key_switch_pkg::Target+:2] == key_switch_pkg::ToResult;
  assign e_half_o = word_e_q[key_switch_pkg::TargetRow];
  assign e_key_o = (word_e_q[key_switch_pkg::Own] && own_member_e_q[2]) || (word_e_q[key_switch_pkg::Valid] &&
      member_e_q[2] && word_e_q[key_switch_pkg::Target+:2] == key_switch_pkg::ToSum);
  assign valid_o0 = word_o0_q[key_switch_pkg::Valid] && member_o0_q[2];
  assign own_o0 = word_o0_q[key_switch_pkg::Own] && own_member_o0_q[2];
  assign prime_o0 = prime_of(word_o0_q);
  assign id_o0 = word_o0_q[key_switch_pkg::Own] ? own_member_o0_q[1:0] : member_o0_q[1:0];
  assign result_o0 = valid_o0 && word_o0_q[key_switch_pkg::Target+:2] == key_switch_pkg::ToResult;
  assign sum_o0 = own_o0 || (valid_o0 && word_o0_q[key_switch_pkg::Target+:2] == key_switch_pkg::ToSum);
  assign o0_key_o = sum_o0;

  // {sum, result, own, first, half, switch, prime, time}
  localparam int unsigned OutWidth = 7 + PW + TimeWidth;
  logic [OutWidth-1:0] out_o0, out_o1_q, out_o6, out_o7_q, out_o8_q, out_o9_q;
  logic [SelWidth-1:0] row_sel_q;
  logic [Lanes*Width-1:0] words_o1_q;
  assign out_o0 = {
    sum_o0, result_o0, own_o0,
    own_o0 ? word_o0_q[key_switch_pkg::OwnFirst] : word_o0_q[key_switch_pkg::First],
    word_o0_q[key_switch_pkg::TargetRow], id_o0, prime_o0, time_o0_q
  };
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      out_o1_q <= '0;
      o1_row_write_o <= 1'b0;
    end else if (en) begin
      out_o1_q <= out_o0;
      o1_row_write_o <= valid_o0 && word_o0_q[key_switch_pkg::Target+:2] == key_switch_pkg::ToRow;
    end
  end
  always_ff @(posedge clk_i) begin
    if (en) begin
      o1_row_o   <= word_o0_q[key_switch_pkg::TargetRow+:RW];
      row_sel_q  <= select(word_o0_q[key_switch_pkg::Prime+:PW]);
    end
  end
  always_ff @(posedge clk_i) if (result_en) words_o1_q <= transformed;
  assign o1_time_o = out_o1_q[TimeWidth-1:0];
  assign o1_prime_o = out_o1_q[TimeWidth+:PW];
  assign o1_id_o = out_o1_q[TimeWidth+PW+:2];
  assign o1_key_o = out_o1_q[OutWidth-1];
  for (genvar l = 0; l < Lanes; l++) begin : gen_row
    assign o1_words_o[60*l+:60] = plain(row_sel_q, words_o1_q[Width*l+:Width]);
  end

  // Factors at o2, products at o9.
  logic result_o1, own_o1, first_o8, result_o8, result_o9_q, sum_o9_q;
  logic [SelWidth-1:0] sel_o0, sel_o1, sel_o2_q, sel_o8, sel_o9;
  assign result_o1 = out_o1_q[OutWidth-2];
  assign own_o1 = out_o1_q[OutWidth-3];
  assign sel_o0 = select(prime_o0);
  assign sel_o1 = select(o1_prime_o);
  always_ff @(posedge clk_i) if (en) sel_o2_q <= sel_o1;

  delay_line #(
      .Width(OutWidth), .Depth(5), .Cleared(1'b1)
  ) u_out_o6 (
      .clk_i, .rst_ni, .en_i(en), .d_i(out_o1_q), .q_o(out_o6)
  );
  assign o6_addend_o = out_o6[OutWidth-2];
  assign o7_time_o = out_o7_q[TimeWidth-1:0];
  assign o7_prime_o = out_o7_q[TimeWidth+:PW];
  assign o7_id_o = out_o7_q[TimeWidth+PW+:2];
  assign o7_sum_o = out_o7_q[OutWidth-1];
  assign o7_addend_o = out_o7_q[OutWidth-2];
  assign o7_first_o = out_o7_q[OutWidth-4];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {out_o7_q, out_o8_q, out_o9_q} <= '0;
    else if (en) {out_o7_q, out_o8_q, out_o9_q} <= {out_o6, out_o7_q, out_o8_q};
  end
  assign o8_prime_o = out_o8_q[TimeWidth+:PW];
  assign o8_id_o = out_o8_q[TimeWidth+PW+:2];
  assign o8_addend_o = out_o8_q[OutWidth-2];
  assign result_o8 = out_o8_q[OutWidth-2];
  assign first_o8 = out_o8_q[OutWidth-4];
  assign sel_o8 = select(o8_prime_o);
  assign result_o9_q = out_o9_q[OutWidth-2];
  assign sum_o9_q = out_o9_q[OutWidth-1];
  assign sel_o9 = select(out_o9_q[TimeWidth+:PW]);

`ifndef SYNTHESIS
  logic [2*Lanes-1:0][Width-1:0] products_o9, others_o9;  // for the assertions
`endif
  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    logic [Width-1:0] own_o1_q, dividend_o1_q, difference_o1, factor_o2_q;
    always_ff @(posedge clk_i) begin
      if (lane_en[l]) begin
        own_o1_q <= scaled(sel_o0, o0_own_i[60*l+:60]);
        dividend_o1_q <= scaled(sel_o0, o0_sum_i[60*l+:60]);
      end
    end
    mod_add #(
        .Width(Width), .Subtract(1'b1)
    ) u_difference (
        .modulus_i(modulus(sel_o1)),
        .a_i(dividend_o1_q),
        .b_i(words_o1_q[Width*l+:Width]),
        .r_o(difference_o1)
    );
    always_ff @(posedge clk_i) begin
      if (lane_en[l]) begin
        factor_o2_q <= own_o1 ? own_o1_q : result_o1 ? difference_o1 : words_o1_q[Width*l+:Width];
      end
    end
    for (genvar k = 0; k < 2; k++) begin : gen_half
      logic [Width-1:0] key_o2_q, product_o9, sum_o9, other_o9_q;
      logic [59:0] other_o8;
      always_ff @(posedge clk_i) begin
        if (lane_en[l]) begin
          key_o2_q <= result_o1 ? Width'(key_switch_pkg::special_inverse(o1_prime_o))
                                : Width'(o1_key_i[60*(Lanes*k+l)+:60]);
        end
      end
      mod_mul_sparse #(
          .Width(Width), .Count(Count), .SelWidth(SelWidth), .FoldWidth(FoldWidth), .Moduli(Moduli)
      ) u_product (
          .clk_i, .en_i(lane_en[l]), .sel_i(sel_o2_q), .a_i(factor_o2_q), .b_i(key_o2_q), .c_o(product_o9)
      );
      assign other_o8 = result_o8 ? o8_addend_i[60*l+:60] : first_o8 ? '0 : o8_sum_i[60*(Lanes*k+l)+:60];
      always_ff @(posedge clk_i) if (lane_en[l]) other_o9_q <= scaled(sel_o8, other_o8);
      mod_add #(
          .Width(Width)
      ) u_sum (
          .modulus_i(modulus(sel_o9)), .a_i(product_o9), .b_i(other_o9_q), .r_o(sum_o9)
      );
      always_ff @(posedge clk_i) if (lane_en[l]) o10_words_o[60*(Lanes*k+l)+:60] <= plain(sel_o9, sum_o9);
`ifndef SYNTHESIS
      assign products_o9[Lanes*k+l] = product_o9;
      assign others_o9[Lanes*k+l] = other_o9_q;
`endif
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {o10_sum_o, o10_result_o} <= '0;
    end else if (en) begin
      {o10_sum_o, o10_result_o} <= {sum_o9_q, result_o9_q};
    end
  end
  always_ff @(posedge clk_i) begin
    if (en) begin
      o10_time_o  <= out_o9_q[TimeWidth-1:0];
      o10_prime_o <= out_o9_q[TimeWidth+:PW];
      o10_half_o  <= out_o9_q[TimeWidth+PW+2];
      o10_id_o    <= out_o9_q[TimeWidth+PW+:2];
    end
  end

`ifndef SYNTHESIS
  // Residues are canonical at every interface between blocks; without an operation they are arbitrary.
  function automatic logic below(input logic [SelWidth-1:0] sel, input logic [Lanes*Width-1:0] residues);
    below = 1'b1;
    for (int unsigned l = 0; l < Lanes; l++) below &= residues[Width*l+:Width] < modulus(sel);
  endfunction
  // {valid, prime} from x2 to the transform.
  logic valid_x2_q;
  logic [Conversion:0][SelWidth:0] converting;
  assign converting[0] = {valid_x2_q, select(prime_x2)};
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_x2_q <= '0;
      converting[Conversion:1] <= '0;
    end else if (en) begin
      valid_x2_q <= word_x1_q[key_switch_pkg::Valid] && member_x1_q[2];
      converting[Conversion:1] <= converting[Conversion-1:0];
    end
  end
  a_raised_residues_are_canonical :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   en && converting[Conversion][SelWidth] |-> below(converting[Conversion][SelWidth-1:0], raised));
  a_transformed_residues_are_canonical :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   en && valid_o0 |-> below(select(word_o0_q[key_switch_pkg::Prime+:PW]), transformed));
  logic [1:0] canonical_o9;
  always_comb begin
    canonical_o9 = '1;
    for (int unsigned l = 0; l < 2 * Lanes; l++) begin
      canonical_o9[0] &= products_o9[l] < modulus(sel_o9);
      canonical_o9[1] &= others_o9[l] < modulus(sel_o9);
    end
  end
  a_products_are_canonical :
  assert property (@(posedge clk_i) disable iff (!rst_ni) en && (sum_o9_q || result_o9_q) |-> canonical_o9[0]);
  a_sums_and_addends_are_canonical :
  assert property (@(posedge clk_i) disable iff (!rst_ni) en && (sum_o9_q || result_o9_q) |-> canonical_o9[1]);
`endif
endmodule
