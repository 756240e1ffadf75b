// Delays words by Depth enabled cycles.
//
// Short lines are registers; longer ones a circular memory, which maps to distributed RAM. Words that were in the line at a
// reset come out of it: what says whether a word is valid must be reset elsewhere.
module delay_line #(
    parameter int unsigned Width = 60,
    parameter int unsigned Depth = 8
) (
    input  logic             clk_i,
    input  logic             rst_ni,
    input  logic             en_i,
    input  logic [Width-1:0] d_i,
    output logic [Width-1:0] q_o
);
  if (Depth == 0) begin : g_wire
    logic unused;
    assign unused = ^{clk_i, rst_ni, en_i};
    assign q_o = d_i;
  end else if (Depth < 3) begin : g_registers
    logic [Width-1:0] word_q[Depth];
    logic unused;
    assign unused = rst_ni;
    always_ff @(posedge clk_i) begin
      if (en_i) begin
        word_q[0] <= d_i;
        for (int unsigned i = 1; i < Depth; i++) word_q[i] <= word_q[i-1];
      end
    end
    assign q_o = word_q[Depth-1];
  end else begin : g_memory
    // Written Depth - 1 enabled cycles before it is read into the output register.
    localparam int unsigned Words = Depth - 1;
    localparam int unsigned PointerWidth = $clog2(Words);
    logic [Width-1:0] memory[Words];
    logic [PointerWidth-1:0] pointer_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) pointer_q <= '0;
      else if (en_i) pointer_q <= pointer_q == PointerWidth'(Words - 1) ? '0 : pointer_q + 1'b1;
    end
    always_ff @(posedge clk_i) begin
      if (en_i) begin
        memory[pointer_q] <= d_i;
        q_o <= memory[pointer_q];
      end
    end
  end
endmodule
