// Latencies of the transform pipeline, in enabled cycles.
package ntt_pkg;
  // From the tag of a beat to its data at the input of a half: what the twiddle generator needs.
  function automatic int unsigned lead(input int unsigned log_lanes);
    lead = 7 * (2 * log_lanes - 1) + 2 + (1 << log_lanes) + 8;
  endfunction

  // From data in to data out of a half.
  function automatic int unsigned half(input int unsigned log_lanes);
    half = 18 * log_lanes + (1 << log_lanes) + 1;
  endfunction

  // From the tag of a beat to the result at the same time of the polynomial, less the time of one polynomial.
  function automatic int unsigned pipe(input int unsigned log_lanes);
    pipe = lead(log_lanes) + 2 * half(log_lanes) + 3;
  endfunction
endpackage
