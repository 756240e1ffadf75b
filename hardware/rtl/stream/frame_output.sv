// An AXI4-Stream output of polynomials with four places, which can be cleared inside of a frame.
//
// A beat may be given in any cycle that comes two after one with `space_o`. `clear_i` drops what is not offered yet.
// The beat that is offered stays until it is taken. If the receiver has seen the beginning of a frame, a beat of zeros
// ends it, with the last flag and bit 0 of the user field. `live_o` signals a beat that was given after the last clear.
module frame_output #(
    parameter int unsigned Width = 64,
    parameter int unsigned UserWidth = 1
) (
    input  logic                 clk_i,
    input  logic                 rst_ni,
    input  logic                 clear_i,
    output logic                 space_o,
    input  logic                 give_i,
    input  logic [    Width-1:0] data_i,
    input  logic [UserWidth-1:0] user_i,
    input  logic                 last_i,
    output logic [    Width-1:0] tdata_o,
    output logic [UserWidth-1:0] tuser_o,
    output logic                 tlast_o,
    output logic                 tvalid_o,
    input  logic                 tready_i,
    output logic                 live_o
);
  logic [Width+UserWidth:0] places[4];
  logic [1:0] head_q, tail_q, next_head, closing;
  logic [2:0] count_q;
  logic [1:0] stale_q;
  logic open_q, taken, kept, closes;
  // Three beats may come until a cycle without space stops them.
  assign space_o = count_q < 3'd2;
  assign tvalid_o = count_q != 0;
  assign {tlast_o, tuser_o, tdata_o} = places[head_q];
  assign live_o = stale_q == 0;
  assign taken = tvalid_o && tready_i;
  assign next_head = head_q + 2'(taken);
  assign kept = tvalid_o && !tready_i;
  assign closes = tvalid_o ? !tlast_o : open_q;
  assign closing = next_head + 2'(kept);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {head_q, tail_q, count_q, stale_q, open_q} <= '0;
    end else begin
      head_q <= next_head;
      if (taken) open_q <= !tlast_o;
      if (clear_i) begin
        tail_q  <= closing + 2'(closes);
        count_q <= 3'(kept) + 3'(closes);
        stale_q <= 2'(kept) + 2'(closes);
      end else begin
        tail_q  <= tail_q + 2'(give_i);
        count_q <= count_q + 3'(give_i) - 3'(taken);
        if (stale_q != 0 && taken) stale_q <= stale_q - 1'b1;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (clear_i) places[closing] <= {1'b1, UserWidth'(1), Width'(0)};
    else if (give_i) places[tail_q] <= {last_i, user_i, data_i};
  end

`ifndef SYNTHESIS
  // Registers may start with any bits, so nothing holds before a reset.
  bit reset_seen;
  initial reset_seen = 1'b0;
  always @(posedge clk_i) if (!rst_ni) reset_seen <= 1'b1;
  a_a_beat_has_a_place :
  assert property (@(posedge clk_i) disable iff (!rst_ni || !reset_seen)
                   give_i |-> !clear_i && (count_q < 3'd4 || taken));
  a_a_beat_stays_until_it_is_taken :
  assert property (@(posedge clk_i) disable iff (!rst_ni || !reset_seen) tvalid_o && !tready_i |=>
                   tvalid_o && $stable({tdata_o, tuser_o, tlast_o}));
  c_closes_a_frame_between_beats :
  cover property (@(posedge clk_i) clear_i && !tvalid_o && open_q);
  c_closes_a_frame_behind_a_beat :
  cover property (@(posedge clk_i) clear_i && kept && closes);
  c_clears_between_frames :
  cover property (@(posedge clk_i) clear_i && !closes);
`endif
endmodule
