  // Entropy is used once: a wipe and a reset clear all of it, and no encryption begins until all of it is written anew.
  reg wiped_q, before_q;
  always @(posedge clk_i) begin
    before_q <= rst_ni;
    wiped_q <= wipe_entropy_i;
    if (rst_ni) begin
      if (before_q && wiped_q) assert (entropy_o == 0 && written_q == 0 && !encrypt_o);
      assert (!encrypt_o || (written_q == 8'hff && !busy_i && error_q == 0));
      assert (!(encrypt_o && decrypt_o));
      // Words that were not written since the last wipe are zeros.
      if (!written_q[0]) assert (entropy_o[31:0] == 0);
      if (!written_q[1]) assert (entropy_o[63:32] == 0);
      if (!written_q[2]) assert (entropy_o[95:64] == 0);
      if (!written_q[3]) assert (entropy_o[127:96] == 0);
      if (!written_q[4]) assert (entropy_o[159:128] == 0);
      if (!written_q[5]) assert (entropy_o[191:160] == 0);
      if (!written_q[6]) assert (entropy_o[223:192] == 0);
      if (!written_q[7]) assert (entropy_o[255:224] == 0);
    end else begin
      assert (entropy_o == 0 && seed_o == 0 && written_q == 0 && !encrypt_o && !decrypt_o);
    end
  end
