// Key switching of CKKS ciphertexts modulo q_0 ... q_L in digits of Alpha primes, with as many special primes, as
// keywright-rlwe does it bit for bit: `c_k + round((sum_i d_i key_{k,i}) / P)` for both halves k, d_i the centred
// digits of the input, P the special primes' product. L, Alpha, the primes and the schedule are those of
// key_switch_pkg, which hardware/generate/key_switch_package.py makes.
//
// Two chains of transforms, one 60 bits wide and one 51, follow a schedule of Slots polynomial times, after which the
// next key switch begins: a result every Slots N / 2^LogLanes cycles, LogLanes = ceil(LogN / 4). There are no internal
// waits: if a port does not supply or accept a beat when the schedule needs it, the whole pipeline stops until it does.
// Every port has four places. Whether the pipeline moves is decided two cycles ahead, and each part has a copy of the
// decision in a register of its own: no signal of a port depends on one of another port in the same cycle.
// doc/key_switch.md describes the streams, their order, and timing.
module key_switch #(
    parameter int unsigned LogN = 16,  // 8 or 10 to 16
    parameter bit FromMemory = 1'b0,  // twiddle factors; otherwise they are made
    parameter Tables = "tables",
    localparam int unsigned LogLanes = ntt_pkg::log_lanes(LogN),
    localparam int unsigned Lanes = 1 << LogLanes,
    localparam int unsigned PW = key_switch_pkg::PrimeWidth
) (
    input  logic                  clk_i,
    input  logic                  rst_ni,
    // Control.
    input  logic [ 6:0]                 s_axil_awaddr_i,
    input  logic                  s_axil_awvalid_i,
    output logic                  s_axil_awready_o,
    input  logic [31:0]                 s_axil_wdata_i,
    input  logic [ 3:0]                 s_axil_wstrb_i,
    input  logic                  s_axil_wvalid_i,
    output logic                  s_axil_wready_o,
    output logic [ 1:0]                 s_axil_bresp_o,
    output logic                  s_axil_bvalid_o,
    input  logic                  s_axil_bready_i,
    input  logic [ 6:0]                 s_axil_araddr_i,
    input  logic                  s_axil_arvalid_i,
    output logic                  s_axil_arready_o,
    output logic [31:0]                 s_axil_rdata_o,
    output logic [ 1:0]                 s_axil_rresp_o,
    output logic                  s_axil_rvalid_o,
    input  logic                  s_axil_rready_i,
    output logic                  reset_o,  // from the register, the cycle before it acts
    // The digits of the input: evaluations modulo q_0 ... q_L.
    input  logic [Lanes*64-1:0] s_axis_digit_tdata_i,
    input  logic s_axis_digit_tlast_i,
    input  logic s_axis_digit_tvalid_i,
    output logic s_axis_digit_tready_o,
    // The key, a beat of both halves at a time (b in the low words), by chain; the user field is the level of the key.
    input  logic [2*Lanes*64-1:0] s_axis_key_a_tdata_i,
    input  logic [7:0] s_axis_key_a_tuser_i,
    input  logic s_axis_key_a_tlast_i,
    input  logic s_axis_key_a_tvalid_i,
    output logic s_axis_key_a_tready_o,
    input  logic [2*Lanes*64-1:0] s_axis_key_b_tdata_i,
    input  logic [7:0] s_axis_key_b_tuser_i,
    input  logic s_axis_key_b_tlast_i,
    input  logic s_axis_key_b_tvalid_i,
    output logic s_axis_key_b_tready_o,
    // What is added to the results, by chain.
    input  logic [Lanes*64-1:0] s_axis_addend_a_tdata_i,
    input  logic s_axis_addend_a_tlast_i,
    input  logic s_axis_addend_a_tvalid_i,
    output logic s_axis_addend_a_tready_o,
    input  logic [Lanes*64-1:0] s_axis_addend_b_tdata_i,
    input  logic s_axis_addend_b_tlast_i,
    input  logic s_axis_addend_b_tvalid_i,
    output logic s_axis_addend_b_tready_o,
    // Results, by chain; the user field is {prime, half, refused}.
    output logic [Lanes*64-1:0] m_axis_a_tdata_o,
    output logic [PW+1:0] m_axis_a_tuser_o,
    output logic m_axis_a_tlast_o,
    output logic m_axis_a_tvalid_o,
    input  logic m_axis_a_tready_i,
    output logic [Lanes*64-1:0] m_axis_b_tdata_o,
    output logic [PW+1:0] m_axis_b_tuser_o,
    output logic m_axis_b_tlast_o,
    output logic m_axis_b_tvalid_o,
    input  logic m_axis_b_tready_i
);
  localparam int unsigned TimeWidth = LogN - LogLanes;
  localparam int unsigned SW = key_switch_pkg::SlotWidth;
  localparam int unsigned RW = key_switch_pkg::RowWidth;
  localparam int unsigned Limbs = key_switch_pkg::Limbs;
  localparam int unsigned Terms = key_switch_pkg::Alpha;
  localparam int unsigned Primes = Limbs + Terms;
  localparam int unsigned Rows = key_switch_pkg::Rows;

  logic go, en_next_q, en, rst_n, enable, reset_pulse, reset_q;  // `en` is the copy of the control's registers
  logic [key_switch_registers_pkg::ErrorBits-1:0] raised;
  logic busy, done;

  // A reset from the register is as good as one from the pin.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) reset_q <= 1'b0;
    else reset_q <= reset_pulse;
  end
  assign rst_n = rst_ni && !reset_q;
  assign reset_o = reset_pulse;

  // ---- Frames: a key switch begins with one, and ends in the next ----
  logic [TimeWidth-1:0] time_q;
  logic [SW-1:0] slot_q;
  logic current_q, previous_q;
  logic [1:0] number_q;
  logic slot_ends, frame_ends, digit_there;
  assign busy = current_q || previous_q;
  assign slot_ends = &time_q;
  assign frame_ends = !busy || slot_q == SW'(key_switch_pkg::Slots - 1);
  always_ff @(posedge clk_i or negedge rst_n) begin
    if (!rst_n) begin
      {time_q, slot_q, current_q, previous_q, number_q} <= '0;
    end else if (en) begin
      time_q <= time_q + 1'b1;
      if (slot_ends) begin
        slot_q <= frame_ends ? '0 : slot_q + 1'b1;
        if (frame_ends) begin
          previous_q <= current_q;
          current_q  <= enable && digit_there;
          number_q   <= number_q + 1'b1;
        end
      end
    end
  end

  // ---- Chains ----
  localparam int unsigned TagWidth = TimeWidth + SW + 4;
  logic [TagWidth-1:0] frame_tag;
  assign frame_tag = {time_q, slot_q, current_q, previous_q, number_q};

  logic [TimeWidth-1:0] x_time, e_time, o1_time, o7_time, o10_time;
  logic [TimeWidth-1:0] x1_time_q, x2_time_q;
  logic [Lanes*60-1:0] x1_input;
  logic [1:0] x_sum, x_half, w_needs, x_needs, x1_needs, e_result, e_half, e_key, o0_key, o1_writes_row, o1_key;
  logic [1:0] o6_addend, o7_addend, o8_addend;
  logic [1:0] o7_sum, o7_first, o10_sum, o10_result, o10_half;
  logic [1:0][PW-1:0] x_prime, x1_prime, e_prime, o1_prime, o7_prime, o8_prime, o10_prime;
  logic [1:0][1:0] x1_id, e_id, o1_id, o7_id, o8_id, o10_id;
  logic [1:0][RW-1:0] x1_row, o1_row;
  logic [1:0][Terms*Lanes*60-1:0] x1_rows;
  logic [1:0][Lanes*60-1:0] x1_sums, o1_words, o0_own, o0_sums, o8_addends;
  logic [1:0][2*Lanes*60-1:0] o1_keys, o8_sums, o10_words;
  // Both chains are in step: their times are the same.
  logic [TimeWidth-1:0] unused_x_time, unused_e_time, unused_o1_time, unused_o7_time;
  logic [TimeWidth-1:0] unused_o10_time;

  switch_chain #(
      .First(1'b1), .LogN(LogN), .FromMemory(FromMemory), .Tables({Tables, "-a"})
  ) u_chain_a (
      .clk_i, .rst_ni(rst_n), .en_next_i(en_next_q), .tag_i(frame_tag),
      .x_time_o(x_time), .w_input_o(w_needs[0]), .x_input_o(x_needs[0]), .x_sum_o(x_sum[0]), .x_half_o(x_half[0]),
      .x_prime_o(x_prime[0]),
      .x1_input_o(x1_needs[0]),
      .x1_prime_o(x1_prime[0]), .x1_id_o(x1_id[0]), .x1_row_o(x1_row[0]), .x1_input_i(x1_input),
      .x1_row_i(x1_rows[0]), .x1_sum_i(x1_sums[0]),
      .e_time_o(e_time), .e_prime_o(e_prime[0]), .e_id_o(e_id[0]), .e_result_o(e_result[0]),
      .e_half_o(e_half[0]), .o0_own_i(o0_own[0]), .o0_sum_i(o0_sums[0]), .e_key_o(e_key[0]), .o0_key_o(o0_key[0]),
      .o1_time_o(o1_time),
      .o1_row_write_o(o1_writes_row[0]), .o1_row_o(o1_row[0]), .o1_words_o(o1_words[0]),
      .o1_key_o(o1_key[0]), .o1_prime_o(o1_prime[0]),
      .o1_id_o(o1_id[0]), .o1_key_i(o1_keys[0]), .o6_addend_o(o6_addend[0]), .o7_addend_o(o7_addend[0]),
      .o7_sum_o(o7_sum[0]),
      .o7_first_o(o7_first[0]), .o7_prime_o(o7_prime[0]), .o7_id_o(o7_id[0]), .o7_time_o(o7_time),
      .o8_addend_o(o8_addend[0]), .o8_prime_o(o8_prime[0]), .o8_id_o(o8_id[0]),
      .o8_addend_i(o8_addends[0]), .o8_sum_i(o8_sums[0]), .o10_words_o(o10_words[0]),
      .o10_time_o(o10_time), .o10_prime_o(o10_prime[0]), .o10_sum_o(o10_sum[0]),
      .o10_result_o(o10_result[0]), .o10_half_o(o10_half[0]), .o10_id_o(o10_id[0])
  );
  switch_chain #(
      .First(1'b0), .LogN(LogN), .FromMemory(FromMemory), .Tables({Tables, "-b"})
  ) u_chain_b (
      .clk_i, .rst_ni(rst_n), .en_next_i(en_next_q), .tag_i(frame_tag),
      .x_time_o(unused_x_time), .w_input_o(w_needs[1]), .x_input_o(x_needs[1]), .x_sum_o(x_sum[1]),
      .x_half_o(x_half[1]),
      .x_prime_o(x_prime[1]), .x1_input_o(x1_needs[1]),
      .x1_prime_o(x1_prime[1]), .x1_id_o(x1_id[1]), .x1_row_o(x1_row[1]), .x1_input_i(x1_input),
      .x1_row_i(x1_rows[1]), .x1_sum_i(x1_sums[1]),
      .e_time_o(unused_e_time), .e_prime_o(e_prime[1]), .e_id_o(e_id[1]), .e_result_o(e_result[1]),
      .e_half_o(e_half[1]), .o0_own_i(o0_own[1]), .o0_sum_i(o0_sums[1]), .e_key_o(e_key[1]), .o0_key_o(o0_key[1]),
      .o1_time_o(unused_o1_time),
      .o1_row_write_o(o1_writes_row[1]), .o1_row_o(o1_row[1]), .o1_words_o(o1_words[1]),
      .o1_key_o(o1_key[1]), .o1_prime_o(o1_prime[1]),
      .o1_id_o(o1_id[1]), .o1_key_i(o1_keys[1]), .o6_addend_o(o6_addend[1]), .o7_addend_o(o7_addend[1]),
      .o7_sum_o(o7_sum[1]),
      .o7_first_o(o7_first[1]), .o7_prime_o(o7_prime[1]), .o7_id_o(o7_id[1]), .o7_time_o(unused_o7_time),
      .o8_addend_o(o8_addend[1]), .o8_prime_o(o8_prime[1]), .o8_id_o(o8_id[1]),
      .o8_addend_i(o8_addends[1]), .o8_sum_i(o8_sums[1]), .o10_words_o(o10_words[1]),
      .o10_time_o(unused_o10_time), .o10_prime_o(o10_prime[1]), .o10_sum_o(o10_sum[1]),
      .o10_result_o(o10_result[1]), .o10_half_o(o10_half[1]), .o10_id_o(o10_id[1])
  );

  // ---- Ports ----
  logic digit_needs, digit_next, digit_taken;
  logic [1:0] key_needs, key_next, key_taken, addend_needs, addend_next, addend_taken;
  logic [1:0] range_key, short_key, missing_key, wrong_level;
  logic [1:0] range_addend, short_addend, missing_addend, out_free;
  logic range_digit, short_digit, missing_digit;
  logic [1:0][7:0] key_level;
  logic [1:0] unused_addend_user, unused_addend_there, unused_key_there;
  logic unused_digit_user;
  logic which;  // the chain that takes the digit
  assign which = x1_needs[1];

  frame_input #(
      .Words(Lanes), .TimeWidth(TimeWidth)
  ) u_digit (
      .clk_i, .rst_ni(rst_n), .en_i(en),
      .need_i(|x1_needs),
      .need_next_i(digit_needs),
      .go_i(go),
      .modulus_i(key_switch_pkg::modulus(x1_prime[which])),
      .tdata_i(s_axis_digit_tdata_i),
      .tuser_i(1'b0),
      .tlast_i(s_axis_digit_tlast_i),
      .tvalid_i(s_axis_digit_tvalid_i),
      .tready_o(s_axis_digit_tready_o),
      .next_o(digit_next),
      .there_o(digit_there),
      .user_o(unused_digit_user),
      .taken_o(digit_taken),
      .words_o(x1_input),
      .range_o(range_digit),
      .short_o(short_digit),
      .missing_o(missing_digit)
  );
  frame_input #(
      .Words(2 * Lanes), .TimeWidth(TimeWidth), .UserWidth(8)
  ) u_key_a (
      .clk_i, .rst_ni(rst_n), .en_i(en),
      .need_i(o1_key[0]),
      .need_next_i(key_needs[0]),
      .go_i(go),
      .modulus_i(key_switch_pkg::modulus(o1_prime[0])),
      .tdata_i(s_axis_key_a_tdata_i),
      .tuser_i(s_axis_key_a_tuser_i),
      .tlast_i(s_axis_key_a_tlast_i),
      .tvalid_i(s_axis_key_a_tvalid_i),
      .tready_o(s_axis_key_a_tready_o),
      .next_o(key_next[0]),
      .there_o(unused_key_there[0]),
      .user_o(key_level[0]),
      .taken_o(key_taken[0]),
      .words_o(o1_keys[0]),
      .range_o(range_key[0]),
      .short_o(short_key[0]),
      .missing_o(missing_key[0])
  );
  assign wrong_level[0] = key_taken[0] && key_level[0] != 8'(Limbs - 1);
  frame_input #(
      .Words(Lanes), .TimeWidth(TimeWidth)
  ) u_addend_a (
      .clk_i, .rst_ni(rst_n), .en_i(en),
      .need_i(o8_addend[0]),
      .need_next_i(addend_needs[0]),
      .go_i(go),
      .modulus_i(key_switch_pkg::modulus(o8_prime[0])),
      .tdata_i(s_axis_addend_a_tdata_i),
      .tuser_i(1'b0),
      .tlast_i(s_axis_addend_a_tlast_i),
      .tvalid_i(s_axis_addend_a_tvalid_i),
      .tready_o(s_axis_addend_a_tready_o),
      .next_o(addend_next[0]),
      .there_o(unused_addend_there[0]),
      .user_o(unused_addend_user[0]),
      .taken_o(addend_taken[0]),
      .words_o(o8_addends[0]),
      .range_o(range_addend[0]),
      .short_o(short_addend[0]),
      .missing_o(missing_addend[0])
  );
  frame_input #(
      .Words(2 * Lanes), .TimeWidth(TimeWidth), .UserWidth(8)
  ) u_key_b (
      .clk_i, .rst_ni(rst_n), .en_i(en),
      .need_i(o1_key[1]),
      .need_next_i(key_needs[1]),
      .go_i(go),
      .modulus_i(key_switch_pkg::modulus(o1_prime[1])),
      .tdata_i(s_axis_key_b_tdata_i),
      .tuser_i(s_axis_key_b_tuser_i),
      .tlast_i(s_axis_key_b_tlast_i),
      .tvalid_i(s_axis_key_b_tvalid_i),
      .tready_o(s_axis_key_b_tready_o),
      .next_o(key_next[1]),
      .there_o(unused_key_there[1]),
      .user_o(key_level[1]),
      .taken_o(key_taken[1]),
      .words_o(o1_keys[1]),
      .range_o(range_key[1]),
      .short_o(short_key[1]),
      .missing_o(missing_key[1])
  );
  assign wrong_level[1] = key_taken[1] && key_level[1] != 8'(Limbs - 1);
  frame_input #(
      .Words(Lanes), .TimeWidth(TimeWidth)
  ) u_addend_b (
      .clk_i, .rst_ni(rst_n), .en_i(en),
      .need_i(o8_addend[1]),
      .need_next_i(addend_needs[1]),
      .go_i(go),
      .modulus_i(key_switch_pkg::modulus(o8_prime[1])),
      .tdata_i(s_axis_addend_b_tdata_i),
      .tuser_i(1'b0),
      .tlast_i(s_axis_addend_b_tlast_i),
      .tvalid_i(s_axis_addend_b_tvalid_i),
      .tready_o(s_axis_addend_b_tready_o),
      .next_o(addend_next[1]),
      .there_o(unused_addend_there[1]),
      .user_o(unused_addend_user[1]),
      .taken_o(addend_taken[1]),
      .words_o(o8_addends[1]),
      .range_o(range_addend[1]),
      .short_o(short_addend[1]),
      .missing_o(missing_addend[1])
  );
  logic unused;
  assign unused = ^{digit_taken, addend_taken, unused_digit_user, unused_key_there,
                    unused_addend_user, unused_addend_there};

  // ---- The enable: `go` decides on the cycle after the next, by what is needed then ----
  logic [1:0] ahead;  // steps that are decided and not done
  assign ahead = 2'(en) + 2'(en_next_q);
  for (genvar c = 0; c < 2; c++) begin : gen_needs
    assign key_needs[c] = ahead[1] ? e_key[c] : ahead[0] ? o0_key[c] : o1_key[c];
    assign addend_needs[c] = ahead[1] ? o6_addend[c] : ahead[0] ? o7_addend[c] : o8_addend[c];
  end
  assign digit_needs = ahead[1] ? |w_needs : ahead[0] ? |x_needs : |x1_needs;
  assign go = digit_next && &key_next && &addend_next && &out_free;
  always_ff @(posedge clk_i or negedge rst_n) begin
    if (!rst_n) en_next_q <= 1'b0;
    else en_next_q <= go;
  end
  enable_copy u_enable (
      .clk_i, .rst_ni(rst_n), .en_next_i(en_next_q), .en_o(en)
  );

  // ---- Errors: the affected key switch is refused ----
  logic [3:0] refused_q, refused_now;
  always_comb begin
    refused_now = '0;
    if (range_digit || short_digit || missing_digit) refused_now[x1_id[which]] = 1'b1;
    for (int unsigned c = 0; c < 2; c++) begin
      if (range_key[c] || short_key[c] || missing_key[c] || wrong_level[c]) refused_now[o1_id[c]] = 1'b1;
      if (range_addend[c] || short_addend[c] || missing_addend[c]) refused_now[o8_id[c]] = 1'b1;
    end
    raised = '0;
    raised[key_switch_registers_pkg::ErrorRangeDigit] = range_digit;
    raised[key_switch_registers_pkg::ErrorRangeKey] = |range_key;
    raised[key_switch_registers_pkg::ErrorRangeAddend] = |range_addend;
    raised[key_switch_registers_pkg::ErrorShortFrame] = short_digit || |short_key || |short_addend;
    raised[key_switch_registers_pkg::ErrorMissingLast] = missing_digit || |missing_key || |missing_addend;
    raised[key_switch_registers_pkg::ErrorKeyLevel] = |wrong_level;
  end
  always_ff @(posedge clk_i or negedge rst_n) begin
    if (!rst_n) begin
      refused_q <= '0;
    end else begin
      refused_q <= refused_q | refused_now;
      // A number is free again two frames later.
      if (en && slot_ends && frame_ends) refused_q[number_q+2'd1] <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  // For the assertions: the rows that a chain reads at x, for which switch; whether a product at o10 is its sum's
  // first.
  localparam int unsigned WW = key_switch_pkg::WordWidth;
  logic [1:0][WW-1:0] x_word;
  logic [1:0][Terms-1:0] x_active;
  logic [1:0][RW-1:0] x_row;
  logic [1:0][2:0] x_member;
  logic [1:0][1:0] o1_row_id_q;
  logic [1:0] o8_first_q, o9_first_q, o10_first_q;
  assign x_word[0] = u_chain_a.word_x_q;
  assign x_word[1] = u_chain_b.word_x_q;
  assign x_member[0] = u_chain_a.member_x_q;
  assign x_member[1] = u_chain_b.member_x_q;
  for (genvar c = 0; c < 2; c++) begin : gen_x
    assign x_active[c] = {Terms{x_word[c][key_switch_pkg::Valid] && x_member[c][2]}} &
        x_word[c][key_switch_pkg::Active+:Terms];
    assign x_row[c] = x_word[c][key_switch_pkg::Row+:RW];
  end
  always_ff @(posedge clk_i) begin
    if (en) begin
      {o10_first_q, o9_first_q, o8_first_q} <= {o9_first_q, o8_first_q, o7_first};
      o1_row_id_q <= {u_chain_b.member_o0_q[1:0], u_chain_a.member_o0_q[1:0]};
    end
  end
  // Results are read a slot or two after they begin to leave: polynomials are long enough for the package.
  initial begin
    assert ((key_switch_pkg::Gap << TimeWidth) > ntt_pkg::pipe(LogN) - ntt_pkg::lead(LogN) + 12 +
            key_switch_pkg::raise_latency(Terms))
    else $fatal(1, "key_switch: the schedule is made for longer polynomials");
  end
`endif

  // ---- Memories ----
  always_ff @(posedge clk_i) begin
    if (en) begin
      x1_time_q <= x_time;
      x2_time_q <= x1_time_q;
    end
  end

  // Rows: coefficients of the digits' primes and of the remainders. Written by one chain, read by both at the same
  // address.
  logic [Rows-1:0][Lanes*60-1:0] row_words;
  for (genvar r = 0; r < Rows; r++) begin : gen_row
    logic copy_en;
    enable_copy u_enable (
        .clk_i, .rst_ni(rst_n), .en_next_i(en_next_q), .en_o(copy_en)
    );
    localparam int unsigned Bits = r > 0 && r < Limbs ? key_switch_pkg::WidthB : key_switch_pkg::WidthA;
    logic [1:0] writes;
    logic [Lanes*Bits-1:0] write_words, read_words;
    for (genvar c = 0; c < 2; c++) begin : gen_chain
      assign writes[c] = o1_writes_row[c] && o1_row[c] == RW'(r);
    end
    for (genvar l = 0; l < Lanes; l++) begin : gen_lane
      assign write_words[Bits*l+:Bits] = Bits'(writes[1] ? o1_words[1][60*l+:60] : o1_words[0][60*l+:60]);
      assign row_words[r][60*l+:60] = 60'(read_words[Bits*l+:Bits]);
    end
    bank_memory #(
        .Width(Lanes * Bits), .AddressWidth(TimeWidth)
    ) u_memory (
        .clk_i, .en_i(copy_en),
        .read_address_i(x_time),
        .read_data_o(read_words),
        .write_i(|writes),
        .write_address_i(o1_time),
        .write_data_i(write_words)
    );
`ifndef SYNTHESIS
    logic [1:0] reads;
    for (genvar c = 0; c < 2; c++) begin : gen_read
      always_comb begin
        reads[c] = 1'b0;
        for (int unsigned t = 0; t < Terms; t++) reads[c] |= x_active[c][t] && 32'(x_row[c]) + t == r;
      end
    end
    a_a_row_has_one_writer :
    assert property (@(posedge clk_i) disable iff (!rst_n) en |-> !(&writes));
    a_a_line_of_a_row_is_not_read_while_it_is_written :
    assert property (@(posedge clk_i) disable iff (!rst_n) en && |reads && |writes |-> x_time != o1_time);
    // A line stores the number of the switch that wrote it, which must be that of the reading switch.
    logic [1:0] writer_q[1<<TimeWidth];
    always_ff @(posedge clk_i) if (en && |writes) writer_q[o1_time] <= o1_row_id_q[writes[1]];
    for (genvar c = 0; c < 2; c++) begin : gen_reader
      a_a_row_is_read_by_the_switch_that_wrote_it :
      assert property (@(posedge clk_i) disable iff (!rst_n) en && reads[c] |-> writer_q[x_time] == x_member[c][1:0]);
    end
`endif
  end
  for (genvar c = 0; c < 2; c++) begin : gen_row_read
    always_comb begin
      x1_rows[c] = '0;
      for (int unsigned t = 0; t < Terms; t++) begin
        for (int unsigned r = t; r < Rows; r++) begin
          if (x1_row[c] == RW'(r - t)) x1_rows[c][60*Lanes*t+:60*Lanes] = row_words[r];
        end
      end
    end
  end

  // The digits' evaluations, for the products modulo their own primes: two buffers each, by the switch's number.
  logic [Lanes*60-1:0] input_q;
  logic [Limbs-1:0][1:0][Lanes*60-1:0] own_words;
  logic input_write_q;
  logic [PW-1:0] input_prime_q;
  logic input_parity_q;
  always_ff @(posedge clk_i or negedge rst_n) begin
    if (!rst_n) input_write_q <= 1'b0;
    else if (en) input_write_q <= |x1_needs;
  end
  always_ff @(posedge clk_i) begin
    if (en) begin
      input_q <= x1_input;
      input_prime_q <= x1_prime[which];
      input_parity_q <= x1_id[which][0];
    end
  end
  for (genvar i = 0; i < Limbs; i++) begin : gen_own
    localparam int unsigned Bits = i > 0 ? key_switch_pkg::WidthB : key_switch_pkg::WidthA;
    logic [Lanes*Bits-1:0] write_words;
    for (genvar l = 0; l < Lanes; l++) begin : gen_lane
      assign write_words[Bits*l+:Bits] = Bits'(input_q[60*l+:60]);
    end
    for (genvar b = 0; b < 2; b++) begin : gen_buffer
      logic copy_en;
      enable_copy u_enable (
          .clk_i, .rst_ni(rst_n), .en_next_i(en_next_q), .en_o(copy_en)
      );
      logic [Lanes*Bits-1:0] read_words;
      for (genvar l = 0; l < Lanes; l++) begin : gen_lane
        assign own_words[i][b][60*l+:60] = 60'(read_words[Bits*l+:Bits]);
      end
      bank_memory #(
          .Width(Lanes * Bits), .AddressWidth(TimeWidth)
      ) u_memory (
          .clk_i, .en_i(copy_en),
          .read_address_i(e_time),
          .read_data_o(read_words),
          .write_i(input_write_q && input_prime_q == PW'(i) && input_parity_q == b[0]),
          .write_address_i(x2_time_q),
          .write_data_i(write_words)
      );
    end
  end
  logic [1:0] o0_parity_q, o0_half_q;
  logic [1:0][PW-1:0] o0_prime_q;
  for (genvar c = 0; c < 2; c++) begin : gen_own_read
    always_ff @(posedge clk_i) begin
      if (en) begin
        o0_parity_q[c] <= e_id[c][0];
        o0_half_q[c]   <= e_half[c];
        o0_prime_q[c]  <= e_prime[c];
      end
    end
    always_comb begin
      o0_own[c] = o0_parity_q[c] ? own_words[0][1] : own_words[0][0];
      for (int unsigned i = 1; i < Limbs; i++) begin
        if (o0_prime_q[c] == PW'(i)) o0_own[c] = o0_parity_q[c] ? own_words[i][1] : own_words[i][0];
      end
    end
  end

  // Sums: both halves modulo every prime.
  logic [Primes-1:0][1:0][Lanes*60-1:0] sum_words;
  for (genvar j = 0; j < Primes; j++) begin : gen_sum
    localparam int unsigned Bits = j > 0 && j < Limbs ? key_switch_pkg::WidthB : key_switch_pkg::WidthA;
    logic [1:0] adds, writes;
    for (genvar c = 0; c < 2; c++) begin : gen_chain
      assign adds[c] = o7_sum[c] && !o7_first[c] && o7_prime[c] == PW'(j);
      assign writes[c] = o10_sum[c] && o10_prime[c] == PW'(j);
    end
    for (genvar k = 0; k < 2; k++) begin : gen_half
      logic copy_en;
      enable_copy u_enable (
          .clk_i, .rst_ni(rst_n), .en_next_i(en_next_q), .en_o(copy_en)
      );
      logic [1:0] divides, starts;
      logic [TimeWidth-1:0] read_time;
      logic [Lanes*Bits-1:0] write_words, read_words;
      for (genvar c = 0; c < 2; c++) begin : gen_chain
        assign divides[c] = e_result[c] && e_half[c] == k[0] && e_prime[c] == PW'(j);
        assign starts[c] = x_sum[c] && x_half[c] == k[0] && x_prime[c] == PW'(j);
      end
      assign read_time = |divides ? e_time : |starts ? x_time : o7_time;
      for (genvar l = 0; l < Lanes; l++) begin : gen_lane
        assign write_words[Bits*l+:Bits] =
            Bits'(writes[1] ? o10_words[1][60*(Lanes*k+l)+:60] : o10_words[0][60*(Lanes*k+l)+:60]);
        assign sum_words[j][k][60*l+:60] = 60'(read_words[Bits*l+:Bits]);
      end
      bank_memory #(
          .Width(Lanes * Bits), .AddressWidth(TimeWidth)
      ) u_memory (
          .clk_i, .en_i(copy_en),
          .read_address_i(read_time),
          .read_data_o(read_words),
          .write_i(|writes),
          .write_address_i(o10_time),
          .write_data_i(write_words)
      );
`ifndef SYNTHESIS
      a_a_sum_has_one_reader_and_one_writer :
      assert property (@(posedge clk_i) disable iff (!rst_n)
                       en |-> $countones({adds, divides, starts}) <= 1 && $countones(writes) <= 1);
      a_a_line_of_a_sum_is_not_read_while_it_is_written :
      assert property (@(posedge clk_i) disable iff (!rst_n)
                       en && |{adds, divides, starts} && |writes |-> read_time != o10_time);
      // Products that a line has, and whose: all of them when it is taken.
      logic [7:0] products_q[1<<TimeWidth];
      logic [1:0] writer_q[1<<TimeWidth];
      always_ff @(posedge clk_i) begin
        if (en && |writes) begin
          products_q[o10_time] <= o10_first_q[writes[1]] ? 8'd1 : products_q[o10_time] + 8'd1;
          writer_q[o10_time] <= o10_id[writes[1]];
        end
      end
      for (genvar c = 0; c < 2; c++) begin : gen_reader
        a_a_sum_is_taken_when_complete :
        assert property (@(posedge clk_i) disable iff (!rst_n) en && (divides[c] || starts[c]) |->
                         32'(products_q[read_time]) == (Limbs + Terms - 1) / Terms &&
                         writer_q[read_time] == (divides[c] ? e_id[c] : x_member[c][1:0]));
        a_a_product_is_added_to_its_switchs_sum :
        assert property (@(posedge clk_i) disable iff (!rst_n) en && adds[c] |-> writer_q[read_time] == o7_id[c]);
      end
`endif
    end
  end
  logic [1:0] x1_half_q;
  for (genvar c = 0; c < 2; c++) begin : gen_sum_read
    always_ff @(posedge clk_i) if (en) x1_half_q[c] <= x_half[c];
    always_comb begin
      o0_sums[c] = o0_half_q[c] ? sum_words[0][1] : sum_words[0][0];
      o8_sums[c] = {sum_words[0][1], sum_words[0][0]};
      x1_sums[c] = x1_half_q[c] ? sum_words[Limbs][1] : sum_words[Limbs][0];
      for (int unsigned j = 1; j < Primes; j++) begin
        if (j > Limbs && x1_prime[c] == PW'(j)) x1_sums[c] = x1_half_q[c] ? sum_words[j][1] : sum_words[j][0];
        if (o0_prime_q[c] == PW'(j)) o0_sums[c] = o0_half_q[c] ? sum_words[j][1] : sum_words[j][0];
        if (o8_prime[c] == PW'(j)) o8_sums[c] = {sum_words[j][1], sum_words[j][0]};
      end
    end
  end

  // ---- Results: a fault of a beat is in `refused_q` before the beat is here ----
  logic [1:0] refuse, live;
  logic [1:0][Lanes*64-1:0] out_words;
  for (genvar c = 0; c < 2; c++) begin : gen_result
    assign refuse[c] = refused_q[o10_id[c]];
    for (genvar l = 0; l < Lanes; l++) begin : gen_lane
      assign out_words[c][64*l+:64] = refuse[c] ? '0 : {4'b0, o10_words[c][60*l+:60]};
    end
  end
  frame_output #(
      .Width(Lanes * 64), .UserWidth(PW + 2)
  ) u_out_a (
      .clk_i, .rst_ni, .clear_i(reset_q), .space_o(out_free[0]), .give_i(en && o10_result[0]), .data_i(out_words[0]),
      .user_i({o10_prime[0], o10_half[0], refuse[0]}), .last_i(&o10_time), .tdata_o(m_axis_a_tdata_o),
      .tuser_o(m_axis_a_tuser_o), .tlast_o(m_axis_a_tlast_o), .tvalid_o(m_axis_a_tvalid_o),
      .tready_i(m_axis_a_tready_i), .live_o(live[0])
  );
  frame_output #(
      .Width(Lanes * 64), .UserWidth(PW + 2)
  ) u_out_b (
      .clk_i, .rst_ni, .clear_i(reset_q), .space_o(out_free[1]), .give_i(en && o10_result[1]), .data_i(out_words[1]),
      .user_i({o10_prime[1], o10_half[1], refuse[1]}), .last_i(&o10_time), .tdata_o(m_axis_b_tdata_o),
      .tuser_o(m_axis_b_tuser_o), .tlast_o(m_axis_b_tlast_o), .tvalid_o(m_axis_b_tvalid_o),
      .tready_i(m_axis_b_tready_i), .live_o(live[1])
  );

  // The last of the 2 (L + 1) results of a switch ends it.
  localparam int unsigned CountWidth = $clog2(2 * Limbs);
  logic [CountWidth-1:0] results_q;
  logic [1:0] ends;
  assign ends = {m_axis_b_tvalid_o && m_axis_b_tready_i && m_axis_b_tlast_o && live[1],
                 m_axis_a_tvalid_o && m_axis_a_tready_i && m_axis_a_tlast_o && live[0]};
  logic [CountWidth:0] results_now;
  assign results_now = {1'b0, results_q} + (CountWidth + 1)'(ends[0]) + (CountWidth + 1)'(ends[1]);
  assign done = results_now >= (CountWidth + 1)'(2 * Limbs);
  always_ff @(posedge clk_i or negedge rst_n) begin
    if (!rst_n) results_q <= '0;
    else results_q <= CountWidth'(done ? results_now - (CountWidth + 1)'(2 * Limbs) : results_now);
  end

  key_switch_registers #(
      .LogN(LogN)
  ) u_registers (
      .clk_i, .rst_ni,
      .s_axil_awaddr_i,
      .s_axil_awvalid_i,
      .s_axil_awready_o,
      .s_axil_wdata_i,
      .s_axil_wstrb_i,
      .s_axil_wvalid_i,
      .s_axil_wready_o,
      .s_axil_bresp_o,
      .s_axil_bvalid_o,
      .s_axil_bready_i,
      .s_axil_araddr_i,
      .s_axil_arvalid_i,
      .s_axil_arready_o,
      .s_axil_rdata_o,
      .s_axil_rresp_o,
      .s_axil_rvalid_o,
      .s_axil_rready_i,
      .enable_o(enable), .reset_o(reset_pulse), .busy_i(busy), .waiting_i(busy && !en), .raised_i(raised), .done_i(done)
  );
endmodule
