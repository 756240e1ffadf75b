// The thin client's encryption and decryption modulo q0 = 2^60 - 2^18 + 1 (Aikata et al., Boosted-Deflation, section
// 4).
//
// Encryption of m under (b, a), with a expanded from a seed: (c0, c1) = (b v + e0 + m, a v + e1) in evaluation form,
// sampled from 256 bits of entropy exactly as in the software. Decryption: c0 + c1 s in coefficient form. The core
// holds three polynomials. Frames, registers, errors and cycles: doc/client_core.md.
module client_core #(
    parameter int unsigned LogN = 16,  // 10 to 16
    parameter int unsigned Cores = 3,  // for transforms: 3 at once, or 1 for one polynomial after another
    parameter int unsigned Rounds = 4  // of ChaCha in each generator: 1, 2 or 4
) (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic [ 6:0] s_axil_awaddr_i,
    input  logic        s_axil_awvalid_i,
    output logic        s_axil_awready_o,
    input  logic [31:0] s_axil_wdata_i,
    input  logic [ 3:0] s_axil_wstrb_i,
    input  logic        s_axil_wvalid_i,
    output logic        s_axil_wready_o,
    output logic [ 1:0] s_axil_bresp_o,
    output logic        s_axil_bvalid_o,
    input  logic        s_axil_bready_i,
    input  logic [ 6:0] s_axil_araddr_i,
    input  logic        s_axil_arvalid_i,
    output logic        s_axil_arready_o,
    output logic [31:0] s_axil_rdata_o,
    output logic [ 1:0] s_axil_rresp_o,
    output logic        s_axil_rvalid_o,
    input  logic        s_axil_rready_i,
    input  logic [63:0] s_axis_tdata_i,
    input  logic        s_axis_tlast_i,
    input  logic        s_axis_tvalid_i,
    output logic        s_axis_tready_o,
    output logic [63:0] m_axis_tdata_o,
    output logic        m_axis_tlast_o,
    output logic        m_axis_tuser_o,
    output logic        m_axis_tvalid_o,
    input  logic        m_axis_tready_i,
    output logic        busy_o,
    output logic        error_o
);
  localparam logic [2:0] LoadMessage = client_pass_pkg::LoadMessage;
  localparam logic [2:0] AnswerC1 = client_pass_pkg::AnswerC1;
  localparam logic [2:0] AnswerC0 = client_pass_pkg::AnswerC0;
  localparam logic [2:0] LoadC0 = client_pass_pkg::LoadC0;
  localparam logic [2:0] LoadC1 = client_pass_pkg::LoadC1;
  localparam logic [2:0] MultiplySecret = client_pass_pkg::MultiplySecret;
  localparam logic [2:0] AnswerPlain = client_pass_pkg::AnswerPlain;

  // Object of public keys in crates/rlwe/src/keys/public.rs, 3 << 40: words 13 and 14 of the state.
  localparam logic [63:0] PublicKeyStream = 64'd3 << 40;
  localparam int unsigned LineBits = LogN - 2;

  localparam logic [2:0] Wipe = 3'd0, Idle = 3'd1, Pass = 3'd2, Settle = 3'd3, Transform = 3'd4, Deliver = 3'd5,
      Fail = 3'd6, Discard = 3'd7;

  logic [2:0] state_q, pass_q;
  logic [1:0] turn_q;  // the polynomial that a single core transforms
  logic decrypting_q, expanding_q, discard_q, done_q, started_q;
  logic [31:0] cycles_q;
  logic [LineBits-2:0] wipe_q;

  logic encrypt, decrypt, abort, aborted, range, short_frame, missing_last, fault, wipe_now;
  logic pass_last, pass_ended, pass_empty, pass_delivered, pass_open, pass_close, pass_ready;
  logic ntt_start, ntt_done, ntt_busy;

  assign busy_o = state_q != Idle;
  assign aborted = abort && state_q != Idle && state_q != Wipe;
  assign fault = range || short_frame || missing_last;
  assign pass_close = state_q == Fail && pass_empty && pass_open;
  assign ntt_start = state_q == Settle && pass_empty && !aborted;
  // Secrets leave the registers and the generators once everything is sampled, or if the operation fails.
  assign wipe_now = ntt_start || state_q == Wipe && wipe_q == '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Wipe;
      {pass_q, turn_q, decrypting_q, discard_q, done_q, cycles_q, wipe_q} <= '0;
    end else begin
      if (state_q != Idle) cycles_q <= cycles_q + 1;
      case (state_q)
        Wipe: begin
          wipe_q <= wipe_q + 1;
          if (wipe_q == '1) state_q <= discard_q && !abort ? Discard : Idle;
          if (abort) discard_q <= 1'b0;
        end
        Idle: begin
          if (encrypt || decrypt) begin
            state_q <= Pass;
            pass_q <= decrypt ? LoadC0 : LoadMessage;
            turn_q <= '0;
            decrypting_q <= decrypt;
            done_q <= 1'b0;
            cycles_q <= '0;
          end
        end
        Pass: begin
          if (pass_last) begin
            case (pass_q)
              LoadMessage, MultiplySecret: state_q <= Settle;
              AnswerC0, AnswerPlain: state_q <= Deliver;
              AnswerC1: pass_q <= AnswerC0;
              LoadC0: pass_q <= LoadC1;
              default: pass_q <= MultiplySecret;
            endcase
          end
        end
        Settle: if (pass_empty) state_q <= Transform;
        Transform: begin
          if (ntt_done && Cores == 1 && !decrypting_q && turn_q != 2'd2) begin
            state_q <= Settle;
            turn_q  <= turn_q + 1;
          end else if (ntt_done) begin
            state_q <= Pass;
            pass_q  <= decrypting_q ? AnswerPlain : AnswerC1;
          end
        end
        Deliver: begin
          if (pass_empty && pass_delivered) begin
            state_q <= Idle;
            done_q  <= 1'b1;
          end
        end
        Fail: if (pass_empty) state_q <= Wipe;
        default: begin  // Discard
          if (s_axis_tvalid_i && s_axis_tlast_i) {state_q, discard_q} <= {Idle, 1'b0};
        end
      endcase
      // The rest of a faulty frame is discarded, unless the beat was its last.
      if (fault && state_q != Fail) {state_q, discard_q} <= {Fail, !pass_ended};
      if (aborted) begin
        discard_q <= 1'b0;
        if (state_q == Discard) state_q <= Idle;
        else if (state_q != Fail) state_q <= Fail;
      end
    end
  end

  logic [255:0] entropy, seed;
  client_registers #(
      .LogN(LogN)
  ) u_registers (
      .clk_i, .rst_ni,
      .s_axil_awaddr_i, .s_axil_awvalid_i, .s_axil_awready_o, .s_axil_wdata_i, .s_axil_wstrb_i, .s_axil_wvalid_i,
      .s_axil_wready_o, .s_axil_bresp_o, .s_axil_bvalid_o, .s_axil_bready_i, .s_axil_araddr_i, .s_axil_arvalid_i,
      .s_axil_arready_o, .s_axil_rdata_o, .s_axil_rresp_o, .s_axil_rvalid_o, .s_axil_rready_i,
      .encrypt_o(encrypt), .decrypt_o(decrypt), .abort_o(abort), .entropy_o(entropy), .seed_o(seed),
      .wipe_entropy_i(wipe_now && !decrypting_q), .busy_i(busy_o), .done_i(done_q),
      .discarding_i(state_q == Discard), .cycles_i(cycles_q), .range_i(range), .short_frame_i(short_frame),
      .missing_last_i(missing_last), .aborted_i(aborted), .error_o
  );

  // Streams: first v, e0 and e1 from the entropy, each with its own range of blocks; then the uniform half, and its
  // rare retries, from the seed. The third stream then runs on the seed too, so that nothing secret stays in it.
  logic [255:0] key;
  logic [2:0] stream_start, stream_valid, stream_ready;
  logic [2:0][63:0] stream_word;
  logic [2:0][31:0] stream_block;
  logic [2:0][95:0] stream_nonce;
  logic retry_start, retry_ready, uniform_ready, uniform_words_ready, uniform_valid;
  logic [31:0] retry_block;
  logic [7:0] retry_attempt;
  logic [59:0] uniform;
  logic [2:0][59:0] drawn, sample, spare_sample_q;
  logic [2:0] drawn_valid, sample_words_ready;
  logic drawn_ready, sample_valid, sample_ready, spare_q;

  // The cycle after a start: the registers that the streams read have settled.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {expanding_q, started_q} <= '0;
    else begin
      started_q <= encrypt || wipe_now;
      if (encrypt) expanding_q <= 1'b0;
      else if (wipe_now) expanding_q <= 1'b1;
    end
  end
  assign key = expanding_q ? seed : entropy;
  assign stream_start = {started_q, started_q || retry_start, started_q};
  assign stream_nonce[0] = expanding_q ? {32'd0, PublicKeyStream} : 96'd0;
  assign stream_nonce[1] = expanding_q ? {8'd0, retry_attempt, 16'd0, PublicKeyStream} : 96'd0;
  assign stream_nonce[2] = stream_nonce[0];
  assign stream_block[0] = 32'd0;
  assign stream_block[1] = expanding_q ? retry_block : 32'd1 << (LogN - 3);
  assign stream_block[2] = expanding_q ? 32'd0 : 32'd2 << (LogN - 3);
  assign stream_ready = expanding_q ? {1'b0, retry_ready, uniform_words_ready}
                                    : {sample_words_ready[1:0], sample_words_ready[2]};
  for (genvar k = 0; k < 3; k++) begin : gen_stream
    chacha_stream #(
        .Rounds(Rounds)
    ) u_stream (
        .clk_i, .rst_ni, .key_i(key), .nonce_i(stream_nonce[k]), .block_i(stream_block[k]), .long_i(!expanding_q),
        .start_i(stream_start[k]), .word_o(stream_word[k]), .valid_o(stream_valid[k]), .ready_i(stream_ready[k])
    );
  end
  ternary_sampler u_mask (
      .clk_i, .rst_ni, .clear_i(started_q), .word_i(stream_word[0]), .valid_i(stream_valid[0] && !expanding_q),
      .ready_o(sample_words_ready[2]), .residue_o(drawn[2]), .valid_o(drawn_valid[2]), .ready_i(drawn_ready)
  );
  for (genvar e = 0; e < 2; e++) begin : gen_error
    gaussian_sampler u_error (
        .clk_i, .rst_ni, .clear_i(started_q), .word_i(stream_word[e+1]), .valid_i(stream_valid[e+1] && !expanding_q),
        .ready_o(sample_words_ready[e]), .residue_o(drawn[e]), .valid_o(drawn_valid[e]), .ready_i(drawn_ready)
    );
  end
  // Samples that no pass takes wait here: what the samplers and generators do depends on registers alone.
  assign drawn_ready = &drawn_valid && !spare_q;
  assign sample_valid = &drawn_valid || spare_q;
  assign sample = spare_q ? spare_sample_q : drawn;
  always_ff @(posedge clk_i) spare_sample_q <= sample;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) spare_q <= 1'b0;
    else spare_q <= sample_valid && !sample_ready && !started_q;
  end
  uniform_sampler u_uniform (
      .clk_i, .rst_ni, .start_i(started_q), .word_i(stream_word[0]), .valid_i(stream_valid[0] && expanding_q),
      .ready_o(uniform_words_ready), .retry_start_o(retry_start), .retry_block_o(retry_block),
      .retry_attempt_o(retry_attempt), .retry_word_i(stream_word[1]), .retry_valid_i(stream_valid[1] && expanding_q),
      .retry_ready_o(retry_ready), .residue_o(uniform), .valid_o(uniform_valid), .ready_i(uniform_ready)
  );

  // Passes.
  logic pass_read;
  logic [LineBits-1:0] pass_read_line;
  logic [2:0][239:0] pass_read_data, pass_write_data;
  logic [2:0] pass_write;
  logic [2:0][LineBits-1:0] pass_write_line;
  client_pass #(
      .LogN(LogN)
  ) u_pass (
      .clk_i, .rst_ni, .run_i(state_q == Pass && !started_q), .pass_i(pass_q), .restart_i(state_q == Idle),
      .last_o(pass_last), .empty_o(pass_empty), .delivered_o(pass_delivered), .close_i(pass_close), .open_o(pass_open),
      .range_o(range), .short_frame_o(short_frame), .missing_last_o(missing_last), .ended_o(pass_ended),
      .s_axis_tdata_i, .s_axis_tlast_i, .s_axis_tvalid_i, .s_axis_tready_o(pass_ready),
      .m_axis_tdata_o, .m_axis_tlast_o, .m_axis_tuser_o, .m_axis_tvalid_o, .m_axis_tready_i,
      .sample_i(sample), .sample_valid_i(sample_valid), .sample_ready_o(sample_ready),
      .uniform_i(uniform), .uniform_valid_i(uniform_valid), .uniform_ready_o(uniform_ready),
      .read_o(pass_read), .read_line_o(pass_read_line), .read_data_i(pass_read_data),
      .write_o(pass_write), .write_line_o(pass_write_line), .write_data_o(pass_write_data)
  );
  assign s_axis_tready_o = pass_ready || state_q == Discard;

  // Transforms.
  logic [1:0] ntt_read, ntt_write;
  logic [1:0][LineBits-2:0] ntt_read_address, ntt_write_address;
  logic [2:0][1:0][239:0] read_data;
  logic [Cores-1:0][1:0][239:0] ntt_read_data, ntt_write_data;
  if (Cores == 1) begin : gen_one
    assign ntt_read_data[0] = read_data[turn_q];
  end else begin : gen_all
    assign ntt_read_data = read_data;
  end
  client_ntt #(
      .LogN(LogN), .Cores(Cores)
  ) u_ntt (
      .clk_i, .rst_ni, .start_i(ntt_start), .stop_i(aborted), .inverse_i(decrypting_q), .busy_o(ntt_busy),
      .done_o(ntt_done), .read_o(ntt_read), .read_address_o(ntt_read_address), .read_data_i(ntt_read_data),
      .write_o(ntt_write), .write_address_o(ntt_write_address), .write_data_o(ntt_write_data)
  );

  // Memories: used by the transform while it runs, by the wipe, and otherwise by the passes.
  logic [1:0] pass_parity_q;
  always_ff @(posedge clk_i) pass_parity_q <= {pass_parity_q[0], ^pass_read_line};
  for (genvar m = 0; m < 3; m++) begin : gen_memory
    logic [1:0] read, write;
    logic [2*(LineBits-1)-1:0] read_address, write_address;  // of both banks
    logic [479:0] write_data;
    always_comb begin
      read = ntt_read;
      read_address = ntt_read_address;
      write = Cores == 1 && turn_q != 2'(m) ? 2'b00 : ntt_write;
      write_address = ntt_write_address;
      write_data = ntt_write_data[Cores==1?0 : m];
      if (!ntt_busy) begin
        read = pass_read ? 2'b01 << (^pass_read_line) : 2'b00;
        read_address = {2{pass_read_line[LineBits-1:1]}};
        write = pass_write[m] ? 2'b01 << (^pass_write_line[m]) : 2'b00;
        write_address = {2{pass_write_line[m][LineBits-1:1]}};
        write_data = {2{pass_write_data[m]}};
      end
      if (state_q == Wipe) begin
        write = 2'b11;
        write_address = {2{wipe_q}};
        write_data = '0;
      end
    end
    poly_memory #(
        .LogN(LogN)
    ) u_memory (
        .clk_i, .read_i(read), .read_address_i(read_address), .read_data_o(read_data[m]), .write_i(write),
        .write_address_i(write_address), .write_data_i(write_data)
    );
    assign pass_read_data[m] = read_data[m][pass_parity_q[1]];
  end

`ifndef SYNTHESIS
  a_passes_rest_during_transforms :
  assert property (@(posedge clk_i) disable iff (!rst_ni) ntt_busy |-> pass_write == '0 && !pass_read);
  a_transforms_rest_during_the_wipe :
  assert property (@(posedge clk_i) disable iff (!rst_ni) state_q == Wipe |-> !ntt_busy);
  c_encrypted :
  cover property (@(posedge clk_i) done_q && !decrypting_q);
  c_decrypted :
  cover property (@(posedge clk_i) done_q && decrypting_q);
  c_range :
  cover property (@(posedge clk_i) range);
  c_short_frame :
  cover property (@(posedge clk_i) short_frame);
  c_missing_last :
  cover property (@(posedge clk_i) missing_last);
  c_fault_in_a_second_frame :
  cover property (@(posedge clk_i) fault && pass_q == AnswerC0);
  c_closed_frame :
  cover property (@(posedge clk_i) pass_close);
  c_abort_in_a_transform :
  cover property (@(posedge clk_i) aborted && state_q == Transform);
  c_abort_of_a_discard :
  cover property (@(posedge clk_i) aborted && state_q == Discard);
  c_discard_ended_by_last :
  cover property (@(posedge clk_i) state_q == Discard && s_axis_tvalid_i && s_axis_tlast_i);
`endif
endmodule
