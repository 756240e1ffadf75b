// Functional coverage of key_switch, bound to it in every simulation: corner words on every port, every port that makes
// the others wait, resets in every phase, the sequences of switches, and every fault on every port.
module key_switch_cover #(
    parameter int unsigned Lanes = 16
) (
    input logic clk_i,
    input logic rst_n,
    input logic en,
    input logic enable,
    input logic slot_ends,
    input logic frame_ends,
    input logic busy,
    input logic current_q,
    input logic previous_q,
    input logic begins,  // a digit is there at the end of a frame
    input logic [key_switch_registers_pkg::ErrorBits-1:0] raised,
    // By port: digit, key a, key b, addend a, addend b.
    input logic [4:0] ok,
    input logic [4:0] taken,
    input logic [4:0] range,
    input logic [4:0] short_frame,
    input logic [4:0] missing,
    input logic [4:0] skipping,
    input logic [1:0] level,
    input logic [4:0][Lanes*60-1:0] words,
    input logic [4:0][59:0] modulus,
    // Results.
    input logic [1:0] out_free,
    input logic [1:0] result,
    input logic [1:0] refused
);
  // ---- Errors, as the register has them ----
  c_error_range_digit :
  cover property (@(posedge clk_i) raised[key_switch_registers_pkg::ErrorRangeDigit]);
  c_error_range_key :
  cover property (@(posedge clk_i) raised[key_switch_registers_pkg::ErrorRangeKey]);
  c_error_range_addend :
  cover property (@(posedge clk_i) raised[key_switch_registers_pkg::ErrorRangeAddend]);
  c_error_short_frame :
  cover property (@(posedge clk_i) raised[key_switch_registers_pkg::ErrorShortFrame]);
  c_error_missing_last :
  cover property (@(posedge clk_i) raised[key_switch_registers_pkg::ErrorMissingLast]);
  c_error_key_level :
  cover property (@(posedge clk_i) raised[key_switch_registers_pkg::ErrorKeyLevel]);
  c_level_a :
  cover property (@(posedge clk_i) level[0]);
  c_level_b :
  cover property (@(posedge clk_i) level[1]);
  c_refused_a :
  cover property (@(posedge clk_i) en && result[0] && refused[0]);
  c_refused_b :
  cover property (@(posedge clk_i) en && result[1] && refused[1]);

  // ---- Ports ----
  c_only_digit_waits :
  cover property (@(posedge clk_i) !ok[0] && &out_free && &{ok[1], ok[2], ok[3], ok[4]});
  c_digit_all_zero :
  cover property (@(posedge clk_i) taken[0] && words[0] == '0);
  c_digit_all_top :
  cover property (@(posedge clk_i) taken[0] && words[0] == {Lanes{modulus[0] - 60'd1}});
  c_digit_all_equal :
  cover property (@(posedge clk_i) taken[0] && words[0] == {Lanes{words[0][59:0]}} &&
                  words[0][59:0] != 0 && words[0][59:0] != modulus[0] - 60'd1);
  c_digit_range :
  cover property (@(posedge clk_i) range[0]);
  c_digit_short :
  cover property (@(posedge clk_i) short_frame[0]);
  c_digit_missing :
  cover property (@(posedge clk_i) missing[0]);
  c_digit_skipping :
  cover property (@(posedge clk_i) skipping[0]);
  c_only_key_a_waits :
  cover property (@(posedge clk_i) !ok[1] && &out_free && &{ok[0], ok[2], ok[3], ok[4]});
  c_key_a_all_zero :
  cover property (@(posedge clk_i) taken[1] && words[1] == '0);
  c_key_a_all_top :
  cover property (@(posedge clk_i) taken[1] && words[1] == {Lanes{modulus[1] - 60'd1}});
  c_key_a_all_equal :
  cover property (@(posedge clk_i) taken[1] && words[1] == {Lanes{words[1][59:0]}} &&
                  words[1][59:0] != 0 && words[1][59:0] != modulus[1] - 60'd1);
  c_key_a_range :
  cover property (@(posedge clk_i) range[1]);
  c_key_a_short :
  cover property (@(posedge clk_i) short_frame[1]);
  c_key_a_missing :
  cover property (@(posedge clk_i) missing[1]);
  c_key_a_skipping :
  cover property (@(posedge clk_i) skipping[1]);
  c_only_key_b_waits :
  cover property (@(posedge clk_i) !ok[2] && &out_free && &{ok[0], ok[1], ok[3], ok[4]});
  c_key_b_all_zero :
  cover property (@(posedge clk_i) taken[2] && words[2] == '0);
  c_key_b_all_top :
  cover property (@(posedge clk_i) taken[2] && words[2] == {Lanes{modulus[2] - 60'd1}});
  c_key_b_all_equal :
  cover property (@(posedge clk_i) taken[2] && words[2] == {Lanes{words[2][59:0]}} &&
                  words[2][59:0] != 0 && words[2][59:0] != modulus[2] - 60'd1);
  c_key_b_range :
  cover property (@(posedge clk_i) range[2]);
  c_key_b_short :
  cover property (@(posedge clk_i) short_frame[2]);
  c_key_b_missing :
  cover property (@(posedge clk_i) missing[2]);
  c_key_b_skipping :
  cover property (@(posedge clk_i) skipping[2]);
  c_only_addend_a_waits :
  cover property (@(posedge clk_i) !ok[3] && &out_free && &{ok[0], ok[1], ok[2], ok[4]});
  c_addend_a_all_zero :
  cover property (@(posedge clk_i) taken[3] && words[3] == '0);
  c_addend_a_all_top :
  cover property (@(posedge clk_i) taken[3] && words[3] == {Lanes{modulus[3] - 60'd1}});
  c_addend_a_all_equal :
  cover property (@(posedge clk_i) taken[3] && words[3] == {Lanes{words[3][59:0]}} &&
                  words[3][59:0] != 0 && words[3][59:0] != modulus[3] - 60'd1);
  c_addend_a_range :
  cover property (@(posedge clk_i) range[3]);
  c_addend_a_short :
  cover property (@(posedge clk_i) short_frame[3]);
  c_addend_a_missing :
  cover property (@(posedge clk_i) missing[3]);
  c_addend_a_skipping :
  cover property (@(posedge clk_i) skipping[3]);
  c_only_addend_b_waits :
  cover property (@(posedge clk_i) !ok[4] && &out_free && &{ok[0], ok[1], ok[2], ok[3]});
  c_addend_b_all_zero :
  cover property (@(posedge clk_i) taken[4] && words[4] == '0);
  c_addend_b_all_top :
  cover property (@(posedge clk_i) taken[4] && words[4] == {Lanes{modulus[4] - 60'd1}});
  c_addend_b_all_equal :
  cover property (@(posedge clk_i) taken[4] && words[4] == {Lanes{words[4][59:0]}} &&
                  words[4][59:0] != 0 && words[4][59:0] != modulus[4] - 60'd1);
  c_addend_b_range :
  cover property (@(posedge clk_i) range[4]);
  c_addend_b_short :
  cover property (@(posedge clk_i) short_frame[4]);
  c_addend_b_missing :
  cover property (@(posedge clk_i) missing[4]);
  c_addend_b_skipping :
  cover property (@(posedge clk_i) skipping[4]);
  c_only_result_a_waits :
  cover property (@(posedge clk_i) &ok && !out_free[0] && out_free[1]);
  c_only_result_b_waits :
  cover property (@(posedge clk_i) &ok && !out_free[1] && out_free[0]);

  // ---- One switch after another ----
  c_begins_idle :
  cover property (@(posedge clk_i) en && slot_ends && frame_ends && begins && !busy);
  c_begins_back_to_back :
  cover property (@(posedge clk_i) en && slot_ends && frame_ends && begins && current_q);
  c_begins_behind_the_last_frame :
  cover property (@(posedge clk_i) en && slot_ends && frame_ends && begins && !current_q && previous_q);
  c_the_rest_of_a_digit_at_a_frames_end :
  cover property (@(posedge clk_i) en && slot_ends && frame_ends && skipping[0]);
  c_disabled_at_a_frames_end :
  cover property (@(posedge clk_i) en && slot_ends && frame_ends && current_q && !enable);

  // ---- Resets: the activity in the cycle before ----
  c_reset_idle :
  cover property (@(posedge clk_i) $fell(rst_n) && !$past(busy));
  c_reset_in_a_first_frame :
  cover property (@(posedge clk_i) $fell(rst_n) && $past(current_q && !previous_q));
  c_reset_in_two_frames :
  cover property (@(posedge clk_i) $fell(rst_n) && $past(current_q && previous_q));
  c_reset_in_a_last_frame :
  cover property (@(posedge clk_i) $fell(rst_n) && $past(!current_q && previous_q));
  c_reset_while_waiting :
  cover property (@(posedge clk_i) $fell(rst_n) && $past(busy && !en));
endmodule

bind key_switch key_switch_cover #(
    .Lanes(Lanes)
) u_cover (
    .clk_i, .rst_n, .en, .enable, .slot_ends, .frame_ends, .busy, .current_q, .previous_q,
    .begins(enable && digit_there),
    .raised,
    .ok({addend_next, key_next, digit_next}),
    .taken({addend_taken, key_taken, digit_taken}),
    .range({range_addend, range_key, range_digit}),
    .short_frame({short_addend, short_key, short_digit}),
    .missing({missing_addend, missing_key, missing_digit}),
    .skipping({u_addend_b.skip_q, u_addend_a.skip_q, u_key_b.skip_q, u_key_a.skip_q, u_digit.skip_q}),
    .level(wrong_level),
    // Of a key its half b.
    .words({o8_addends[1], o8_addends[0], o1_keys[1][Lanes*60-1:0], o1_keys[0][Lanes*60-1:0], x1_input}),
    .modulus({key_switch_pkg::modulus(o8_prime[1]), key_switch_pkg::modulus(o8_prime[0]),
              key_switch_pkg::modulus(o1_prime[1]), key_switch_pkg::modulus(o1_prime[0]),
              key_switch_pkg::modulus(x1_prime[which])}),
    .out_free,
    .result({m_axis_b_tvalid_o, m_axis_a_tvalid_o}),
    .refused({m_axis_b_tuser_o[0], m_axis_a_tuser_o[0]})
);
