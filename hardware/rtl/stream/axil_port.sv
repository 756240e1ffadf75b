// The AXI4-Lite side of a register block: one write and one read at a time, whole aligned words only.
//
// In a cycle with `write_o` the block reports whether the address accepts the word. It reports the value at
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
  logic write, read;

  assign write = s_axil_awvalid_i && s_axil_wvalid_i && !s_axil_bvalid_o;
  assign s_axil_awready_o = write;
  assign s_axil_wready_o = write;
  assign write_o = write && s_axil_wstrb_i == '1 && s_axil_awaddr_i[1:0] == '0;
  assign write_address_o = s_axil_awaddr_i;
  assign write_data_o = s_axil_wdata_i;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {s_axil_bvalid_o, s_axil_bresp_o} <= '0;
    end else if (write) begin
      s_axil_bvalid_o <= 1'b1;
      s_axil_bresp_o  <= write_o && write_known_i ? Okay : SlvErr;
    end else if (s_axil_bready_i) begin
      s_axil_bvalid_o <= 1'b0;
    end
  end

  assign read = s_axil_arvalid_i && !s_axil_rvalid_o;
  assign s_axil_arready_o = read;
  assign read_address_o = s_axil_araddr_i;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {s_axil_rvalid_o, s_axil_rresp_o, s_axil_rdata_o} <= '0;
    end else if (read) begin
      s_axil_rvalid_o <= 1'b1;
      s_axil_rresp_o  <= read_known_i && s_axil_araddr_i[1:0] == '0 ? Okay : SlvErr;
      s_axil_rdata_o  <= read_value_i;
    end else if (s_axil_rready_i) begin
      s_axil_rvalid_o <= 1'b0;
    end
  end
endmodule
