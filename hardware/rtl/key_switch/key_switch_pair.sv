// Two key switches side by side with one key: two ciphertexts are switched in the time of one, and each beat of the key
// serves both.
//
// The cores are key_switch, each with its own streams for digits, addends and results, in the orders of
// doc/key_switch.md: index 0 and 1 of those ports, with a handshake each. A beat of the key is complete when both cores
// have taken it, so switches begin in pairs: a core waits for a partner without input.
//
// Control: a write goes to both cores, a read to the core that bit 7 of the address names.
module key_switch_pair #(
    parameter int unsigned LogN = 16,  // 8 or 10 to 16
    parameter bit FromMemory = 1'b0,  // twiddle factors; otherwise they are made
    parameter Tables = "tables",
    localparam int unsigned Lanes = 1 << ntt_pkg::log_lanes(LogN),
    localparam int unsigned PW = key_switch_pkg::PrimeWidth
) (
    input  logic                  clk_i,
    input  logic                  rst_ni,
    // Control.
    input  logic [ 7:0]           s_axil_awaddr_i,
    input  logic                  s_axil_awvalid_i,
    output logic                  s_axil_awready_o,
    input  logic [31:0]           s_axil_wdata_i,
    input  logic [ 3:0]           s_axil_wstrb_i,
    input  logic                  s_axil_wvalid_i,
    output logic                  s_axil_wready_o,
    output logic [ 1:0]           s_axil_bresp_o,
    output logic                  s_axil_bvalid_o,
    input  logic                  s_axil_bready_i,
    input  logic [ 7:0]           s_axil_araddr_i,
    input  logic                  s_axil_arvalid_i,
    output logic                  s_axil_arready_o,
    output logic [31:0]           s_axil_rdata_o,
    output logic [ 1:0]           s_axil_rresp_o,
    output logic                  s_axil_rvalid_o,
    input  logic                  s_axil_rready_i,
    // The key, for both cores.
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
    // Digits, addends and results of core 0 and core 1.
    input  logic [1:0][Lanes*64-1:0] s_axis_digit_tdata_i,
    input  logic [1:0] s_axis_digit_tlast_i,
    input  logic [1:0] s_axis_digit_tvalid_i,
    output logic [1:0] s_axis_digit_tready_o,
    input  logic [1:0][Lanes*64-1:0] s_axis_addend_a_tdata_i,
    input  logic [1:0] s_axis_addend_a_tlast_i,
    input  logic [1:0] s_axis_addend_a_tvalid_i,
    output logic [1:0] s_axis_addend_a_tready_o,
    input  logic [1:0][Lanes*64-1:0] s_axis_addend_b_tdata_i,
    input  logic [1:0] s_axis_addend_b_tlast_i,
    input  logic [1:0] s_axis_addend_b_tvalid_i,
    output logic [1:0] s_axis_addend_b_tready_o,
    output logic [1:0][Lanes*64-1:0] m_axis_a_tdata_o,
    output logic [1:0][PW+1:0] m_axis_a_tuser_o,
    output logic [1:0] m_axis_a_tlast_o,
    output logic [1:0] m_axis_a_tvalid_o,
    input  logic [1:0] m_axis_a_tready_i,
    output logic [1:0][Lanes*64-1:0] m_axis_b_tdata_o,
    output logic [1:0][PW+1:0] m_axis_b_tuser_o,
    output logic [1:0] m_axis_b_tlast_o,
    output logic [1:0] m_axis_b_tvalid_o,
    input  logic [1:0] m_axis_b_tready_i
);
  // ---- Control: one write and one read at a time ----
  logic [1:0] awready, wready, bvalid, arready, rvalid, reset;
  logic [1:0][1:0] bresp, rresp;
  logic [1:0][31:0] rdata;
  logic [1:0] chosen;
  logic reading_q;
  assign chosen = {s_axil_araddr_i[7], !s_axil_araddr_i[7]};
  // The cores take a write together, and answer it together.
  assign s_axil_awready_o = &awready;
  assign s_axil_wready_o = &wready;
  assign s_axil_bvalid_o = &bvalid;
  assign s_axil_bresp_o = bresp[0];
  assign s_axil_arready_o = !reading_q;
  assign s_axil_rvalid_o = |rvalid;
  assign s_axil_rdata_o = rvalid[1] ? rdata[1] : rdata[0];
  assign s_axil_rresp_o = rvalid[1] ? rresp[1] : rresp[0];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) reading_q <= 1'b0;
    else if (reading_q) reading_q <= !(s_axil_rvalid_o && s_axil_rready_i);
    else reading_q <= s_axil_arvalid_i;
  end
  logic unused;
  assign unused = ^{s_axil_awaddr_i[7], bresp[1], arready};

  // ---- The key: a beat is valid for the core that has not taken it, and complete when both have ----
  logic [1:0][1:0] key_valid, key_ready, key_taken_q;  // [chain][core]
  logic [1:0] offered, ready, done;
  // After a reset from the register the cores' streams restart, and the key's with them.
  logic reset_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) reset_q <= 1'b0;
    else reset_q <= |reset;
  end
  assign offered = {s_axis_key_b_tvalid_i, s_axis_key_a_tvalid_i};
  for (genvar c = 0; c < 2; c++) begin : gen_key
    assign key_valid[c] = offered[c] ? ~key_taken_q[c] : '0;
    assign ready[c] = &(key_taken_q[c] | key_ready[c]);
    assign done[c] = offered[c] && ready[c];
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) key_taken_q[c] <= '0;
      else if (|reset || reset_q || done[c]) key_taken_q[c] <= '0;
      else key_taken_q[c] <= key_taken_q[c] | (key_valid[c] & key_ready[c]);
    end
  end
  assign s_axis_key_a_tready_o = ready[0];
  assign s_axis_key_b_tready_o = ready[1];

  // ---- Cores ----
  for (genvar i = 0; i < 2; i++) begin : gen_core
    key_switch #(
        .LogN(LogN), .FromMemory(FromMemory), .Tables(Tables)
    ) u_core (
        .clk_i, .rst_ni,
        .s_axil_awaddr_i(s_axil_awaddr_i[6:0]), .s_axil_awvalid_i,
        .s_axil_awready_o(awready[i]), .s_axil_wdata_i, .s_axil_wstrb_i, .s_axil_wvalid_i,
        .s_axil_wready_o(wready[i]),
        .s_axil_bresp_o(bresp[i]), .s_axil_bvalid_o(bvalid[i]), .s_axil_bready_i,
        .s_axil_araddr_i(s_axil_araddr_i[6:0]), .s_axil_arvalid_i(s_axil_arvalid_i && chosen[i] && !reading_q),
        .s_axil_arready_o(arready[i]), .s_axil_rdata_o(rdata[i]), .s_axil_rresp_o(rresp[i]),
        .s_axil_rvalid_o(rvalid[i]), .s_axil_rready_i, .reset_o(reset[i]),
        .s_axis_key_a_tdata_i, .s_axis_key_a_tuser_i, .s_axis_key_a_tlast_i,
        .s_axis_key_a_tvalid_i(key_valid[0][i]), .s_axis_key_a_tready_o(key_ready[0][i]),
        .s_axis_key_b_tdata_i, .s_axis_key_b_tuser_i, .s_axis_key_b_tlast_i,
        .s_axis_key_b_tvalid_i(key_valid[1][i]), .s_axis_key_b_tready_o(key_ready[1][i]),
        .s_axis_digit_tdata_i(s_axis_digit_tdata_i[i]), .s_axis_digit_tlast_i(s_axis_digit_tlast_i[i]),
        .s_axis_digit_tvalid_i(s_axis_digit_tvalid_i[i]), .s_axis_digit_tready_o(s_axis_digit_tready_o[i]),
        .s_axis_addend_a_tdata_i(s_axis_addend_a_tdata_i[i]), .s_axis_addend_a_tlast_i(s_axis_addend_a_tlast_i[i]),
        .s_axis_addend_a_tvalid_i(s_axis_addend_a_tvalid_i[i]), .s_axis_addend_a_tready_o(s_axis_addend_a_tready_o[i]),
        .s_axis_addend_b_tdata_i(s_axis_addend_b_tdata_i[i]), .s_axis_addend_b_tlast_i(s_axis_addend_b_tlast_i[i]),
        .s_axis_addend_b_tvalid_i(s_axis_addend_b_tvalid_i[i]), .s_axis_addend_b_tready_o(s_axis_addend_b_tready_o[i]),
        .m_axis_a_tdata_o(m_axis_a_tdata_o[i]), .m_axis_a_tuser_o(m_axis_a_tuser_o[i]),
        .m_axis_a_tlast_o(m_axis_a_tlast_o[i]), .m_axis_a_tvalid_o(m_axis_a_tvalid_o[i]),
        .m_axis_a_tready_i(m_axis_a_tready_i[i]),
        .m_axis_b_tdata_o(m_axis_b_tdata_o[i]), .m_axis_b_tuser_o(m_axis_b_tuser_o[i]),
        .m_axis_b_tlast_o(m_axis_b_tlast_o[i]), .m_axis_b_tvalid_o(m_axis_b_tvalid_o[i]),
        .m_axis_b_tready_i(m_axis_b_tready_i[i])
    );
  end
endmodule
