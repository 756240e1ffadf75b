// Four places between the two sides of a stream: no signal of one side depends on one of the other in the same cycle.
//
// `count_o` places are taken.
module stream_buffer #(
    parameter int unsigned Width = 64
) (
    input  logic             clk_i,
    input  logic             rst_ni,
    input  logic [Width-1:0] data_i,
    input  logic             valid_i,
    output logic             ready_o,
    output logic [Width-1:0] data_o,
    output logic             valid_o,
    output logic [      2:0] count_o,
    input  logic             ready_i
);
  logic [Width-1:0] places[4];
  logic [1:0] head_q, tail_q;
  logic [2:0] count_q;
  logic push, pop;
  assign ready_o = !count_q[2];
  assign valid_o = count_q != 0;
  assign count_o = count_q;
  assign data_o  = places[head_q];
  assign push = valid_i && ready_o;
  assign pop = valid_o && ready_i;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {head_q, tail_q, count_q} <= '0;
    end else begin
      if (push) tail_q <= tail_q + 1'b1;
      if (pop) head_q <= head_q + 1'b1;
      count_q <= count_q + 3'(push) - 3'(pop);
    end
  end
  always_ff @(posedge clk_i) if (push) places[tail_q] <= data_i;

`ifndef SYNTHESIS
  c_full :
  cover property (@(posedge clk_i) count_q[2]);
`endif
endmodule
