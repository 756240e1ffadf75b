// One polynomial: N words of 60 bits, four to a line, the lines in two banks by the parity of their number.
//
// Lines whose numbers differ in one bit lie in different banks, so both lines of a butterfly are read, and two others
// written, in one cycle, in every layer. With four coefficients per line a bank of 2^13 lines fills 54 block memories
// of 4096 x 9 bits: 108 for N = 2^16. Data come two cycles after their address. No line is read for use while it is
// written, so a memory may give anything then; simulations give zeros.
module poly_memory #(
    parameter int unsigned LogN = 16
) (
    input  logic                      clk_i,
    input  logic [1:0]                read_i,          // by bank; for the assertion alone
    input  logic [1:0][LogN-4:0]      read_address_i,
    output logic [1:0][239:0]         read_data_o,
    input  logic [1:0]                write_i,
    input  logic [1:0][LogN-4:0]      write_address_i,
    input  logic [1:0][239:0]         write_data_i
);
  for (genvar b = 0; b < 2; b++) begin : gen_bank
    (* ram_style = "block", no_rw_check *) logic [239:0] lines[2**(LogN-3)];
    logic [239:0] line_q;
    always_ff @(posedge clk_i) begin
      if (write_i[b]) lines[write_address_i[b]] <= write_data_i[b];
      line_q <= lines[read_address_i[b]];
      read_data_o[b] <= line_q;
`ifndef SYNTHESIS
      if (write_i[b] && read_address_i[b] == write_address_i[b]) line_q <= '0;
`endif
    end
`ifndef SYNTHESIS
    a_no_line_is_read_while_it_is_written :
    assert property (@(posedge clk_i) !(read_i[b] && write_i[b] && read_address_i[b] == write_address_i[b]));
`else
    logic unused;
    assign unused = read_i[b];
`endif
  end
endmodule
