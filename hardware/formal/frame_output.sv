  // As key_switch does: a beat comes two cycles after one with space, and none with a clear or in the cycle after it.
  reg space_q, room_q;
  always @(posedge clk_i) begin
    space_q <= rst_ni && !clear_i && space_o;
    room_q <= rst_ni && !clear_i && space_q;
  end
  always @(*) if (!room_q || clear_i) assume (!give_i);

  reg before_q, waits_q;
  reg [Width+UserWidth:0] beat_q;
  reg closing_q;  // a clear has left a frame open whose end has not been taken
  always @(posedge clk_i) begin
    before_q <= rst_ni;
    waits_q <= rst_ni && tvalid_o && !tready_i;
    beat_q <= {tlast_o, tuser_o, tdata_o};
    if (!rst_ni) closing_q <= 1'b0;
    else if (clear_i) closing_q <= closes;
    else if (taken && tlast_o) closing_q <= 1'b0;

    if (rst_ni) begin
      assert (count_q <= 4 && (!room_q || count_q <= 3) && (!space_q || count_q <= 2));
      assert (2'(tail_q - head_q) == count_q[1:0]);
      // A beat that waits is not withdrawn and does not change, in a clear either.
      if (before_q && waits_q) assert (tvalid_o && {tlast_o, tuser_o, tdata_o} == beat_q);
      // A clear inside of a frame: nothing new leaves before a beat that ends the frame and refuses it.
      assert (stale_q <= 2 && 3'(stale_q) <= count_q);
      if (closing_q) begin
        assert (stale_q != 0);
        assert (places[2'(head_q + stale_q - 2'd1)] == {1'b1, UserWidth'(1), Width'(0)});
        assert (stale_q == 1 || !places[head_q][Width+UserWidth]);
        assert (!taken || !live_o);
      end else begin
        assert (stale_q != 2);
      end
    end
  end
