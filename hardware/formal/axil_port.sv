  reg before_q, b_waits_q, r_waits_q;
  reg [1:0] bresp_q, rresp_q;
  reg [31:0] rdata_q;
  // Addresses, words and reads that have come and are not answered.
  reg [1:0] addresses_q, words_q, reads_q;
  wire answered = s_axil_bvalid_o && s_axil_bready_i;
  wire read_answered = s_axil_rvalid_o && s_axil_rready_i;
  always @(posedge clk_i) begin
    before_q <= rst_ni;
    b_waits_q <= s_axil_bvalid_o && !s_axil_bready_i;
    r_waits_q <= s_axil_rvalid_o && !s_axil_rready_i;
    bresp_q <= s_axil_bresp_o;
    {rresp_q, rdata_q} <= {s_axil_rresp_o, s_axil_rdata_o};
    if (!rst_ni) begin
      {addresses_q, words_q, reads_q} <= '0;
    end else begin
      addresses_q <= addresses_q + 2'(s_axil_awvalid_i && s_axil_awready_o) - 2'(answered);
      words_q <= words_q + 2'(s_axil_wvalid_i && s_axil_wready_o) - 2'(answered);
      reads_q <= reads_q + 2'(s_axil_arvalid_i && s_axil_arready_o) - 2'(read_answered);
    end
    if (rst_ni) begin
      // Every write has one answer, and every read.
      assert (addresses_q == 2'(address_full_q) + 2'(s_axil_bvalid_o));
      assert (words_q == 2'(data_full_q) + 2'(s_axil_bvalid_o));
      assert (reads_q == 2'(read_full_q) + 2'(s_axil_rvalid_o));
      // An answer stays as it is until it is taken.
      if (before_q && b_waits_q) assert (s_axil_bvalid_o && s_axil_bresp_o == bresp_q);
      if (before_q && r_waits_q) assert (s_axil_rvalid_o && {s_axil_rresp_o, s_axil_rdata_o} == {rresp_q, rdata_q});
      // The block is given whole, aligned words only, and one write at a time.
      assert (!write_o || (address_full_q && data_full_q && !s_axil_bvalid_o && write_address_o[1:0] == 0));
    end else begin
      assert (!s_axil_bvalid_o && !s_axil_rvalid_o && !write_o);
    end
  end
