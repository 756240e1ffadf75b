// A part's own copy of an enable that is known a cycle before. Tools keep copies apart, so that each has a small load.
(* keep_hierarchy = "yes", dont_touch = "yes" *)
module enable_copy (
    input  logic clk_i,
    input  logic rst_ni,
    input  logic en_next_i,
    output logic en_o
);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) en_o <= 1'b0;
    else en_o <= en_next_i;
  end
endmodule
