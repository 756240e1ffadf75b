// The transform pipeline's division of N = 2^log_n, and its latencies in enabled cycles. See doc/ntt.md.
package ntt_pkg;
  // A beat is 2^log_lanes words. Digits of an index have log_lanes bits, except the second one, which has the remaining
  // bits.
  function automatic int unsigned log_lanes(input int unsigned log_n);
    log_lanes = (log_n + 3) / 4;
  endfunction
  function automatic int unsigned second_digit(input int unsigned log_n);
    second_digit = log_n - 3 * log_lanes(log_n);
  endfunction

  // From the tag of a beat to its data at the input of a half: the time that the twiddle generator needs.
  function automatic int unsigned lead(input int unsigned log_n);
    lead = 9 * (2 * log_lanes(log_n) - 1) + 5 + (1 << log_lanes(log_n)) + 8;
  endfunction

  // From data in to data out of a half.
  function automatic int unsigned half(input int unsigned log_n, input bit first);
    half = 9 * (log_lanes(log_n) + (first ? second_digit(log_n) : log_lanes(log_n))) + (1 << log_lanes(log_n)) + 1;
  endfunction

  // From the tag of a beat to the result at the same time of the polynomial, less the time of one polynomial.
  function automatic int unsigned pipe(input int unsigned log_n);
    pipe = lead(log_n) + half(log_n, 1'b1) + half(log_n, 1'b0) + 3;
  endfunction
endpackage
