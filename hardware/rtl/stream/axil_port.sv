// The AXI4-Lite side of a register block: one write and one read at a time, whole aligned words only.
//
// No ready signal depends on a valid one in the same cycle: address and data may come in any order and wait for each
// other. In a cycle with `write_o` the block reports whether the address accepts the word. It reports the value at
// `read_address_o`, and whether there is one, at any time. Unknown addresses are answered with SLVERR.
module axil_port (
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
    output logic        write_o,
    output logic [ 6:0] write_address_o,
    output logic [31:0] write_data_o,
    input  logic        write_known_i,
    output logic [ 6:0] read_address_o,
    input  logic [31:0] read_value_i,
    input  logic        read_known_i
);
  localparam logic [1:0] Okay = 2'b00, SlvErr = 2'b10;
  logic write, read, address_full_q, data_full_q, read_full_q;
  logic [6:0] write_address_q, read_address_q;
  logic [31:0] write_data_q;
  logic [3:0] strobe_q;

  // Every channel has a place of its own, whose state is the ready signal.
  assign s_axil_awready_o = !address_full_q;
  assign s_axil_wready_o = !data_full_q;
  assign write = address_full_q && data_full_q && !s_axil_bvalid_o;
  assign write_o = write && strobe_q == '1 && write_address_q[1:0] == '0;
  assign write_address_o = write_address_q;
  assign write_data_o = write_data_q;
  always_ff @(posedge clk_i) begin
    if (s_axil_awready_o) write_address_q <= s_axil_awaddr_i;
    if (s_axil_wready_o) {write_data_q, strobe_q} <= {s_axil_wdata_i, s_axil_wstrb_i};
    if (s_axil_arready_o) read_address_q <= s_axil_araddr_i;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {address_full_q, data_full_q, s_axil_bvalid_o, s_axil_bresp_o} <= '0;
    end else begin
      address_full_q <= address_full_q ? !write : s_axil_awvalid_i;
      data_full_q <= data_full_q ? !write : s_axil_wvalid_i;
      if (write) begin
        s_axil_bvalid_o <= 1'b1;
        s_axil_bresp_o  <= write_o && write_known_i ? Okay : SlvErr;
      end else if (s_axil_bready_i) begin
        s_axil_bvalid_o <= 1'b0;
      end
    end
  end

  assign s_axil_arready_o = !read_full_q;
  assign read = read_full_q && !s_axil_rvalid_o;
  assign read_address_o = read_address_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {read_full_q, s_axil_rvalid_o, s_axil_rresp_o, s_axil_rdata_o} <= '0;
    end else begin
      read_full_q <= read_full_q ? !read : s_axil_arvalid_i;
      if (read) begin
        s_axil_rvalid_o <= 1'b1;
        s_axil_rresp_o  <= read_known_i && read_address_q[1:0] == '0 ? Okay : SlvErr;
        s_axil_rdata_o  <= read_value_i;
      end else if (s_axil_rready_i) begin
        s_axil_rvalid_o <= 1'b0;
      end
    end
  end
endmodule
