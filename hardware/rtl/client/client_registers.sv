// AXI4-Lite registers of client_core; their map is client_registers.toml.
module client_registers #(
    parameter int unsigned LogN = 16
) (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic [  6:0] s_axil_awaddr_i,
    input  logic         s_axil_awvalid_i,
    output logic         s_axil_awready_o,
    input  logic [ 31:0] s_axil_wdata_i,
    input  logic [  3:0] s_axil_wstrb_i,
    input  logic         s_axil_wvalid_i,
    output logic         s_axil_wready_o,
    output logic [  1:0] s_axil_bresp_o,
    output logic         s_axil_bvalid_o,
    input  logic         s_axil_bready_i,
    input  logic [  6:0] s_axil_araddr_i,
    input  logic         s_axil_arvalid_i,
    output logic         s_axil_arready_o,
    output logic [ 31:0] s_axil_rdata_o,
    output logic [  1:0] s_axil_rresp_o,
    output logic         s_axil_rvalid_o,
    input  logic         s_axil_rready_i,
    output logic         encrypt_o,           // accepted starts, for one cycle
    output logic         decrypt_o,
    output logic         abort_o,             // a cycle after it is written
    output logic [255:0] entropy_o,
    output logic [255:0] seed_o,
    input  logic         wipe_entropy_i,
    input  logic         busy_i,
    input  logic         done_i,
    input  logic         discarding_i,
    input  logic [ 31:0] cycles_i,
    input  logic         range_i,             // events
    input  logic         short_frame_i,
    input  logic         missing_last_i,
    input  logic         aborted_i,
    output logic         error_o              // a sticky error is set
);
  localparam logic [31:0] Identity = 32'h4343574b;

  logic [7:0] written_q;  // words of entropy
  logic [client_registers_pkg::ErrorBits-1:0] error_q, raised, cleared;
  logic write, known, wanted, idle;
  logic write_control, write_error, write_entropy, write_seed;
  logic [6:0] address, read_address;
  logic [31:0] data, value;

  axil_port u_port (
      .clk_i, .rst_ni,
      .s_axil_awaddr_i, .s_axil_awvalid_i, .s_axil_awready_o, .s_axil_wdata_i, .s_axil_wstrb_i, .s_axil_wvalid_i,
      .s_axil_wready_o, .s_axil_bresp_o, .s_axil_bvalid_o, .s_axil_bready_i, .s_axil_araddr_i, .s_axil_arvalid_i,
      .s_axil_arready_o, .s_axil_rdata_o, .s_axil_rresp_o, .s_axil_rvalid_o, .s_axil_rready_i,
      .write_o(write), .write_address_o(address), .write_data_o(data),
      .write_known_i(write_control || write_error || write_entropy || write_seed),
      .read_address_o(read_address), .read_value_i(value), .read_known_i(known)
  );
  assign write_control = write && address == client_registers_pkg::Control;
  assign write_error = write && address == client_registers_pkg::Error;
  assign write_entropy = write && address[6:5] == client_registers_pkg::Entropy[6:5];
  assign write_seed = write && address[6:5] == client_registers_pkg::Seed[6:5];

  assign idle = !busy_i && error_q == '0;
  assign wanted = write_control
      && (data[client_registers_pkg::ControlEncrypt] || data[client_registers_pkg::ControlDecrypt]);
  assign encrypt_o = write_control && data[client_registers_pkg::ControlEncrypt] && idle && written_q == '1;
  assign decrypt_o = write_control && data[client_registers_pkg::ControlDecrypt] && idle
      && !data[client_registers_pkg::ControlEncrypt];
  assign error_o = error_q != '0;

  always_comb begin
    raised = '0;
    raised[client_registers_pkg::ErrorRange] = range_i;
    raised[client_registers_pkg::ErrorShortFrame] = short_frame_i;
    raised[client_registers_pkg::ErrorMissingLast] = missing_last_i;
    raised[client_registers_pkg::ErrorEntropy] =
        write_control && data[client_registers_pkg::ControlEncrypt] && idle && written_q != '1;
    raised[client_registers_pkg::ErrorRefused] = wanted && !idle;
    raised[client_registers_pkg::ErrorLocked] = (write_entropy || write_seed) && busy_i;
    raised[client_registers_pkg::ErrorAborted] = aborted_i;
    cleared = write_error ? data[client_registers_pkg::ErrorBits-1:0] : '0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      written_q <= '0;
      entropy_o <= '0;
      seed_o <= '0;
      error_q <= '0;
      abort_o <= 1'b0;
    end else begin
      error_q <= (error_q & ~cleared) | raised;
      abort_o <= write_control && data[client_registers_pkg::ControlAbort] && busy_i;
      if (write_entropy && !busy_i) begin
        entropy_o[32*address[4:2]+:32] <= data;
        written_q[address[4:2]] <= 1'b1;
      end
      if (wipe_entropy_i) begin
        entropy_o <= '0;
        written_q <= '0;
      end
      if (write_seed && !busy_i) seed_o[32*address[4:2]+:32] <= data;
    end
  end

  always_comb begin
    known = 1'b1;
    value = '0;
    if (read_address[6:5] == client_registers_pkg::Seed[6:5]) begin
      value = seed_o[32*read_address[4:2]+:32];
    end else begin
      case (read_address)
        client_registers_pkg::Id: value = Identity;
        client_registers_pkg::Config: value = 32'(LogN);
        client_registers_pkg::Status: value = 32'({discarding_i, done_i, busy_i});
        client_registers_pkg::Error: value = 32'(error_q);
        client_registers_pkg::Cycles: value = cycles_i;
        default: known = 1'b0;
      endcase
    end
  end
endmodule
