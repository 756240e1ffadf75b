// Delays words by Depth enabled cycles.
//
// Short lines are registers; longer ones are a circular memory, which maps to distributed RAM. After a reset, a Cleared
// line outputs zeros until the first word after the reset comes out; any other line outputs its old content.
module delay_line #(
    parameter int unsigned Width = 60,
    parameter int unsigned Depth = 8,
    parameter bit Cleared = 1'b0
) (
    input  logic             clk_i,
    input  logic             rst_ni,
    input  logic             en_i,
    input  logic [Width-1:0] d_i,
    output logic [Width-1:0] q_o
);
  logic [Width-1:0] delayed;

  if (Depth == 0) begin : gen_wire
    logic unused;
    assign unused = ^{clk_i, rst_ni, en_i};
    assign delayed = d_i;
  end else if (Depth < 3) begin : gen_registers
    logic [Width-1:0] word_q[Depth];
    always_ff @(posedge clk_i) begin
      if (en_i) begin
        word_q[0] <= d_i;
        for (int unsigned i = 1; i < Depth; i++) word_q[i] <= word_q[i-1];
      end
    end
    assign delayed = word_q[Depth-1];
  end else begin : gen_memory
    // Written Depth - 1 enabled cycles before it is read into the output register.
    localparam int unsigned Words = Depth - 1;
    localparam int unsigned PointerWidth = $clog2(Words);
    logic [Width-1:0] memory[Words];
    logic [Width-1:0] word_q;
    logic [PointerWidth-1:0] pointer_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) pointer_q <= '0;
      else if (en_i) pointer_q <= pointer_q == PointerWidth'(Words - 1) ? '0 : pointer_q + 1'b1;
    end
    always_ff @(posedge clk_i) begin
      if (en_i) begin
        memory[pointer_q] <= d_i;
        word_q <= memory[pointer_q];
      end
    end
    assign delayed = word_q;
  end

  if (Cleared && Depth > 0) begin : gen_cleared
    localparam int unsigned CountWidth = $clog2(Depth + 1);
    logic [CountWidth-1:0] stale_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) stale_q <= CountWidth'(Depth);
      else if (en_i && stale_q != 0) stale_q <= stale_q - 1'b1;
    end
    assign q_o = stale_q == 0 ? delayed : '0;
  end else begin : gen_kept
    logic unused_reset;
    assign unused_reset = rst_ni;
    assign q_o = delayed;
  end
endmodule
