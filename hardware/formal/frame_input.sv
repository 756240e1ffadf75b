  always @(*) assume (modulus_i != 0);
  // As key_switch does: what is decided happens two cycles later, in the order of the decisions.
  reg en_next_q, en_q, promised_next_q, promised_q;
  always @(*) if (!next_o) assume (!go_i);
  always @(*) assume (en_i == en_q);
  always @(*) if (en_q) assume (need_i == promised_q);
  reg [TimeWidth-1:0] due_q;  // place in its polynomial of the next beat that leaves
  integer w;
  always @(posedge clk_i) begin
    en_next_q <= rst_ni && go_i;
    en_q <= rst_ni && en_next_q;
    promised_next_q <= rst_ni && go_i && need_next_i;
    promised_q <= rst_ni && promised_next_q;
    if (!rst_ni) due_q <= '0;
    else if (take) due_q <= due_q + 1'b1;
    if (rst_ni) begin
      // Every step that is decided has its beat.
      assert (count == free_q + 3'(promised_next_q) + 3'(promised_q));
      assert (!promised_q || en_q);
      assert (!promised_next_q || en_next_q);
      assert (!take || valid);
      assert (count <= 4 && free_q <= 4);
      for (w = 0; w < Words; w = w + 1) assert (words_o[60*w+:60] < modulus_i);
      // A beat that comes is taken into the buffer or thrown away, and zeros come with none.
      assert (!(tvalid_i && tready_o) || give || skip_q);
      assert (!fill_q || !tready_o);
      // The buffer holds whole polynomials, in order: the next beat to leave is as many beats before the next to enter.
      assert (due_q + TimeWidth'(count) == time_q);
      // Zeros go on until the end of their frame, and no further; waste begins after a frame's last beat.
      assert (!fill_q || time_q != 0);
      assert (!skip_q || time_q == 0);
      assert (!fill_q || !skip_q);
    end
  end
