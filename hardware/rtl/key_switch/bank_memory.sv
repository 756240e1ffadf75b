// Words of a polynomial, one beat per line: one line is read and one written per cycle, which maps to UltraRAM.
//
// A read of the line being written returns its old content.
module bank_memory #(
    parameter int unsigned Width = 960,
    parameter int unsigned AddressWidth = 12
) (
    input  logic                    clk_i,
    input  logic                    en_i,
    input  logic [AddressWidth-1:0] read_address_i,
    output logic [       Width-1:0] read_data_o,
    input  logic                    write_i,
    input  logic [AddressWidth-1:0] write_address_i,
    input  logic [       Width-1:0] write_data_i
);
  (* ram_style = "ultra" *) logic [Width-1:0] lines[1<<AddressWidth];
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      read_data_o <= lines[read_address_i];
      if (write_i) lines[write_address_i] <= write_data_i;
    end
  end
endmodule
