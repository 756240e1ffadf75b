  // The places in use are those between tail and head: none is lost, none is taken twice, none overflows.
  always @(posedge clk_i) begin
    if (rst_ni) begin
      assert (count_q <= 4);
      assert (2'(tail_q - head_q) == count_q[1:0]);
      assert (!push || count_q < 4);
      assert (!valid_o || count_q > 0);
    end
  end

  // Any word that comes, at any time, is the one that leaves from its place.
  (* anyconst *) reg [Width-1:0] word;
  (* anyseq *) reg chosen;
  reg followed_q;
  reg [1:0] place_q;
  always @(*) if (push && chosen && !followed_q) assume (data_i == word);
  always @(posedge clk_i) begin
    if (!rst_ni) begin
      followed_q <= 1'b0;
    end else if (!followed_q) begin
      followed_q <= push && chosen;
      place_q <= tail_q;
    end else if (pop && head_q == place_q) begin
      followed_q <= 1'b0;
    end
    if (rst_ni && followed_q) begin
      assert (places[place_q] == word);
      assert (3'(2'(place_q - head_q)) < count_q);
      if (head_q == place_q) assert (valid_o && data_o == word);
    end
  end
