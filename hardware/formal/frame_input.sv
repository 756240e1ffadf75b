  always @(*) assume (modulus_i != 0);
  // Time is that of the beat that is needed, as the pipeline counts it.
  reg [TimeWidth-1:0] due_q;
  always @(*) if (need_i) assume (time_i == due_q);
  always @(*) if (!ok_o) assume (!en_i);
  integer w;
  always @(posedge clk_i) begin
    if (!rst_ni) due_q <= '0;
    else if (step) due_q <= due_q + 1'b1;
    if (rst_ni) begin
      for (w = 0; w < Words; w = w + 1) assert (words_o[60*w+:60] < modulus_i);
      // A beat is taken once, by the pipeline or by the waste, and never without being offered.
      assert (!(taken_o && skip_q));
      assert (!taken_o || (tvalid_i && tready_o && need_i && en_i));
      assert (!tready_o || skip_q || taken_o);
      // Zeros go on until the end of their frame, and no further.
      assert (!short_q || due_q != 0);
      assert (!short_q || !skip_q);
      assert (!(short_o && missing_o));
      // Waste begins after a frame's last beat.
      assert (!skip_q || due_q == 0);
    end
  end
