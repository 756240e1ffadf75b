// AXI4-Lite registers of key_switch; their map is key_switch_registers.toml.
module key_switch_registers #(
    parameter int unsigned LogN = 16
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
    output logic        enable_o,
    output logic        reset_o,           // one cycle
    input  logic        busy_i,
    input  logic        waiting_i,
    input  logic [key_switch_registers_pkg::ErrorBits-1:0] raised_i,
    input  logic        done_i             // a key switch's last result leaves
);
  localparam logic [31:0] Identity = 32'h4b574b53;
  localparam logic [31:0] Configuration =
      32'(LogN) | 32'(key_switch_pkg::Limbs - 1) << 8 | 32'(key_switch_pkg::Slots) << 16 |
      32'(key_switch_pkg::Alpha) << 24;

  logic [key_switch_registers_pkg::ErrorBits-1:0] error_q, cleared;
  logic write, write_control, write_error, known;
  logic [6:0] address, read_address;
  logic [31:0] data, done_q, cycles_q, since_q, value;

  axil_port u_port (
      .clk_i, .rst_ni,
      .s_axil_awaddr_i, .s_axil_awvalid_i, .s_axil_awready_o, .s_axil_wdata_i, .s_axil_wstrb_i, .s_axil_wvalid_i,
      .s_axil_wready_o, .s_axil_bresp_o, .s_axil_bvalid_o, .s_axil_bready_i, .s_axil_araddr_i, .s_axil_arvalid_i,
      .s_axil_arready_o, .s_axil_rdata_o, .s_axil_rresp_o, .s_axil_rvalid_o, .s_axil_rready_i,
      .write_o(write), .write_address_o(address), .write_data_o(data),
      .write_known_i(write_control || write_error),
      .read_address_o(read_address), .read_value_i(value), .read_known_i(known)
  );
  assign write_control = write && address == key_switch_registers_pkg::Control;
  assign write_error = write && address == key_switch_registers_pkg::Error;
  assign cleared = write_error ? data[key_switch_registers_pkg::ErrorBits-1:0] : '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {error_q, enable_o, reset_o} <= '0;
      {done_q, cycles_q, since_q} <= '0;
    end else begin
      error_q <= (error_q & ~cleared) | raised_i;
      reset_o <= write_control && data[key_switch_registers_pkg::ControlReset];
      if (write_control) enable_o <= data[key_switch_registers_pkg::ControlEnable];
      since_q <= done_i ? 32'd1 : since_q + 1'b1;
      if (done_i) begin
        done_q   <= done_q + 1'b1;
        cycles_q <= since_q;
      end
    end
  end

  always_comb begin
    known = 1'b1;
    value = '0;
    unique case (read_address)
      key_switch_registers_pkg::Id: value = Identity;
      key_switch_registers_pkg::Config: value = Configuration;
      key_switch_registers_pkg::Control: value = 32'(enable_o);
      key_switch_registers_pkg::Status: value = 32'({waiting_i, busy_i});
      key_switch_registers_pkg::Error: value = 32'(error_q);
      key_switch_registers_pkg::Done: value = done_q;
      key_switch_registers_pkg::Cycles: value = cycles_q;
      default: known = 1'b0;
    endcase
  end
endmodule
