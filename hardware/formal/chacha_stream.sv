  // Every place of the FIFO is free, filled, taken by a block under way, or about to be free: a block always finds its
  // place.
  integer k;
  reg [CountWidth:0] under_way;
  always @(*) begin
    under_way = '0;
    for (k = 0; k < Stages; k = k + 1) under_way = under_way + (CountWidth + 1)'(valid_q[k]);
  end
  always @(posedge clk_i) begin
    if (rst_ni) begin
      assert ((CountWidth + 1)'(credits_q) + (CountWidth + 1)'(popped_q) + under_way + (CountWidth + 1)'(sum_valid_q)
              + (CountWidth + 1)'(filled_q) == (CountWidth + 1)'(Depth));
      assert (!sum_valid_q || filled_q < CountWidth'(Depth));
      assert (valid_q[Stages-1] == (leaves_q || returns_q));
      assert (!(leaves_q && returns_q));
      assert (PointerWidth'(write_q - read_q) == filled_q[PointerWidth-1:0]);
      assert (running_q || (credits_q == CountWidth'(Depth) && !popped_q && !valid_o));
    end
  end
