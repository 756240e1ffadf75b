// The passes over all coefficients other than transforms (client_pass_pkg), one coefficient per cycle.
//
// A beat is accepted when everything that it needs is available. It then passes through a pipeline that never stalls: a
// beat whose result goes to the stream is taken only if the output FIFO has room for it. A beat that breaks the
// frame's rules is reported in the next cycle, in which no beat is taken, and goes no further in the pipeline. So
// nothing but a register waits for the comparison with the modulus. The pass is at its end after such a beat.
module client_pass #(
    parameter int unsigned LogN = 16,
    parameter logic [59:0] Modulus = 60'd1152921504606584833
) (
    input  logic                      clk_i,
    input  logic                      rst_ni,
    input  logic                      run_i,
    input  logic [2:0]                pass_i,
    input  logic                      restart_i,         // next beat is coefficient 0
    output logic                      last_o,            // the last beat of a pass is taken
    output logic                      empty_o,           // nothing in the pipeline
    output logic                      delivered_o,       // nor in the output FIFO
    input  logic                      close_i,           // ends an unfinished output frame; only when empty
    output logic                      open_o,            // an output frame is unfinished
    // Events, a cycle after the beat, and the beat's last flag.
    output logic                      range_o,
    output logic                      short_frame_o,
    output logic                      missing_last_o,
    output logic                      ended_o,
    // Streams.
    input  logic [63:0]               s_axis_tdata_i,
    input  logic                      s_axis_tlast_i,
    input  logic                      s_axis_tvalid_i,
    output logic                      s_axis_tready_o,
    output logic [63:0]               m_axis_tdata_o,
    output logic                      m_axis_tlast_o,
    output logic                      m_axis_tuser_o,    // with tlast: the frame is to be thrown away
    output logic                      m_axis_tvalid_o,
    input  logic                      m_axis_tready_i,
    // Samples: v, e0, e1 together, and the public key's uniform half.
    input  logic [2:0][59:0]          sample_i,          // e0, e1, v, by memory
    input  logic                      sample_valid_i,
    output logic                      sample_ready_o,
    input  logic [59:0]               uniform_i,
    input  logic                      uniform_valid_i,
    output logic                      uniform_ready_o,
    // Memories, by line.
    output logic                      read_o,
    output logic [LogN-3:0]           read_line_o,
    input  logic [2:0][239:0]         read_data_i,       // two cycles later
    output logic [2:0]                write_o,
    output logic [2:0][LogN-3:0]      write_line_o,
    output logic [2:0][239:0]         write_data_o
);
  localparam logic [2:0] LoadMessage = client_pass_pkg::LoadMessage;
  localparam logic [2:0] AnswerC1 = client_pass_pkg::AnswerC1;
  localparam logic [2:0] AnswerC0 = client_pass_pkg::AnswerC0;
  localparam logic [2:0] LoadC0 = client_pass_pkg::LoadC0;
  localparam logic [2:0] LoadC1 = client_pass_pkg::LoadC1;
  localparam logic [2:0] MultiplySecret = client_pass_pkg::MultiplySecret;
  localparam logic [2:0] AnswerPlain = client_pass_pkg::AnswerPlain;

  // Cycles from acceptance to result: memory 2, choice of operands 1, product 7, sum 1.
  localparam int unsigned Result = 11;
  localparam int unsigned Depth = 32;  // of the output FIFO

  logic [LogN-1:0] index_q;
  logic streamed, answers, sampled, expanded, source, room, taken, faulty;
  logic [5:0] credits_q;

  // The needs of the pass.
  assign streamed = pass_i != AnswerC1 && pass_i != AnswerPlain;
  assign answers = pass_i == AnswerC1 || pass_i == AnswerC0 || pass_i == AnswerPlain;
  assign sampled = pass_i == LoadMessage;
  assign expanded = pass_i == AnswerC1;
  assign room = !answers || credits_q != 0;
  assign source = run_i && !faulty && room && (!sampled || sample_valid_i) && (!expanded || uniform_valid_i);
  assign s_axis_tready_o = source && streamed;
  assign taken = source && (!streamed || s_axis_tvalid_i);
  assign sample_ready_o = taken && sampled;
  assign uniform_ready_o = taken && expanded;

  // The possible faults of a beat.
  assign last_o = taken && index_q == '1;
  assign faulty = range_o || short_frame_o || missing_last_o;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {range_o, short_frame_o, missing_last_o, ended_o} <= '0;
    else begin
      range_o <= taken && streamed && s_axis_tdata_i >= 64'(Modulus);
      short_frame_o <= taken && streamed && s_axis_tlast_i && index_q != '1;
      missing_last_o <= taken && streamed && !s_axis_tlast_i && index_q == '1;
      ended_o <= s_axis_tlast_i;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) index_q <= '0;
    else if (restart_i) index_q <= '0;
    else if (taken) index_q <= index_q + 1;
  end

  // Samples of v and e1 are collected into lines as they come.
  logic [2:1][179:0] early_q;
  logic [2:1] early_write_q;
  logic [2:1][239:0] early_line_q;
  logic [LogN-3:0] early_number_q;
  always_ff @(posedge clk_i) begin
    for (int unsigned m = 1; m < 3; m++) begin
      if (taken && sampled) early_q[m] <= {sample_i[m], early_q[m][179:60]};
      early_line_q[m] <= {sample_i[m], early_q[m]};
    end
    early_number_q <= index_q[LogN-1:2];
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) early_write_q <= '0;
    else early_write_q <= {2{taken && sampled && index_q[1:0] == 2'd3}};
  end

  // Acceptance to operands.
  logic [Result:1] valid_q;
  logic [2:0] pass2, pass_out;
  logic [LogN-1:0] index_out;
  logic [1:0] word2;
  logic [59:0] x2, error2, a3_q, b3_q, x3_q, a10, product10, result_q;
  logic [2:0][59:0] coefficient;

  assign read_o = taken;
  assign read_line_o = index_q[LogN-1:2];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) valid_q <= '0;
    else valid_q <= {valid_q[Result-1:2], valid_q[1] && !faulty, taken};
  end
  delay_line #(
      .Width(125), .Depth(2)
  ) u_operands (
      .clk_i, .rst_ni, .en_i(1'b1),
      .d_i({pass_i, index_q[1:0], expanded ? uniform_i : streamed ? s_axis_tdata_i[59:0] : 60'd1, sample_i[0]}),
      .q_o({pass2, word2, x2, error2})
  );
  for (genvar m = 0; m < 3; m++) begin : gen_coefficient
    assign coefficient[m] = read_data_i[m][60*word2+:60];
  end
  always_ff @(posedge clk_i) begin
    x3_q <= x2;
    case (pass2)
      AnswerC1, AnswerC0: b3_q <= coefficient[2];
      MultiplySecret: b3_q <= coefficient[1];
      AnswerPlain: b3_q <= coefficient[0];
      default: b3_q <= 60'd1;
    endcase
    case (pass2)
      LoadMessage: a3_q <= error2;
      AnswerC1: a3_q <= coefficient[1];
      AnswerC0, MultiplySecret: a3_q <= coefficient[0];
      default: a3_q <= 60'd0;
    endcase
  end

  // x B + A.
  logic [59:0] sum;
  mod_mul_sparse #(
      .FoldWidth(client_pkg::FoldWidth)
  ) u_product (
      .clk_i, .en_i(1'b1), .sel_i(1'b0), .a_i(x3_q), .b_i(b3_q), .c_o(product10)
  );
  delay_line #(
      .Width(60), .Depth(7)
  ) u_addend (
      .clk_i, .rst_ni, .en_i(1'b1), .d_i(a3_q), .q_o(a10)
  );
  mod_add u_sum (
      .modulus_i(Modulus), .a_i(product10), .b_i(a10), .r_o(sum)
  );
  delay_line #(
      .Width(LogN + 3), .Depth(Result)
  ) u_place (
      .clk_i, .rst_ni, .en_i(1'b1), .d_i({pass_i, index_q}), .q_o({pass_out, index_out})
  );
  always_ff @(posedge clk_i) result_q <= sum;

  // Writes results into memory, by line, and zeros over data that were read for the last time.
  logic line_done, to_stream;
  logic [179:0] gathered_q;
  logic [2:0] kept, wiped;
  assign line_done = valid_q[Result] && index_out[1:0] == 2'd3;
  assign to_stream = pass_out == AnswerC1 || pass_out == AnswerC0 || pass_out == AnswerPlain;
  always_comb begin
    kept  = 3'b000;
    wiped = 3'b000;
    case (pass_out)
      LoadMessage, LoadC0: kept = 3'b001;
      LoadC1: kept = 3'b010;
      MultiplySecret: {kept, wiped} = {3'b001, 3'b010};
      AnswerC1: wiped = 3'b010;
      AnswerC0: wiped = 3'b101;
      default: wiped = 3'b001;
    endcase
  end
  always_ff @(posedge clk_i) if (valid_q[Result]) gathered_q <= {result_q, gathered_q[179:60]};

  always_comb begin
    for (int unsigned m = 0; m < 3; m++) begin
      write_o[m] = line_done && (kept[m] || wiped[m]);
      write_line_o[m] = index_out[LogN-1:2];
      write_data_o[m] = kept[m] ? {result_q, gathered_q} : 240'd0;
    end
    for (int unsigned m = 1; m < 3; m++) begin
      if (early_write_q[m]) begin
        write_o[m] = 1'b1;
        write_line_o[m] = early_number_q;
        write_data_o[m] = early_line_q[m];
      end
    end
  end

  // The output FIFO. One place is reserved for the beat that ends an unfinished frame.
  logic [61:0] fifo[Depth];
  logic [61:0] head, entry;
  logic [4:0] write_q, read_q;
  logic [5:0] filled_q;
  logic push, pop, last_out;

  assign last_out = index_out == '1;
  assign push = (valid_q[Result] && to_stream) || close_i;
  assign entry = close_i ? {2'b11, 60'd0} : {1'b0, last_out, result_q};
  assign head = fifo[read_q];
  assign m_axis_tvalid_o = filled_q != 0;
  assign {m_axis_tuser_o, m_axis_tlast_o} = head[61:60];
  assign m_axis_tdata_o = {4'd0, head[59:0]};
  assign pop = m_axis_tvalid_o && m_axis_tready_i;
  assign empty_o = valid_q == '0 && early_write_q == '0;
  assign delivered_o = filled_q == 0;

  always_ff @(posedge clk_i) if (push) fifo[write_q] <= entry;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {write_q, read_q, filled_q, open_o} <= '0;
      credits_q <= 6'(Depth - 1);
    end else begin
      if (push) write_q <= write_q + 1;
      if (pop) read_q <= read_q + 1;
      filled_q <= filled_q + 6'(push) - 6'(pop);
      // A closing beat takes the reserved place, and releases it when it leaves. A faulty beat returns its place.
      credits_q <= credits_q - 6'(taken && answers) - 6'(close_i) + 6'(pop) + 6'(faulty && answers);
      if (push) open_o <= !entry[60];
    end
  end

`ifndef SYNTHESIS
  a_fifo_has_room :
  assert property (@(posedge clk_i) disable iff (!rst_ni) push |-> filled_q < 6'(Depth));
  a_places_are_returned :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      empty_o && delivered_o |-> credits_q == 6'(Depth - 1));
  a_close_only_when_empty :
  assert property (@(posedge clk_i) disable iff (!rst_ni) close_i |-> empty_o && open_o);
  a_output_keeps_still :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      m_axis_tvalid_o && !m_axis_tready_i |=> m_axis_tvalid_o && $stable(m_axis_tdata_o));
  a_samples_are_residues :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      taken && sampled |-> sample_i[0] < Modulus && sample_i[1] < Modulus && sample_i[2] < Modulus);
  c_output_blocked :
  cover property (@(posedge clk_i) run_i && answers && credits_q == 0);
  c_input_waits_for_samples :
  cover property (@(posedge clk_i) run_i && sampled && s_axis_tvalid_i && !sample_valid_i);
  c_output_waits_for_input :
  cover property (@(posedge clk_i) run_i && pass_i == AnswerC0 && !s_axis_tvalid_i);
`endif
endmodule
