// `Cores` transforms at once, in place, with one set of twiddle factors: forward (Cooley-Tukey, natural to bit-reversed
// order) or inverse (Gentleman-Sande, back), in the order of crates/ring.
//
// A layer of distance t = 2^lt processes line pair k = 0 .. N/8 - 1, one per cycle. The number of its low line is k
// with a zero inserted at bit max(lt - 2, 0), that of its high line has a one there. The group of the pair's first
// butterfly is 4k >> lt, with the factor psi^brv16(N/2t + group) (for the root of degree 2^16, for every N). At t = 2
// and 1 the exponents of the other groups of a pair of lines differ from it by 2^15, 2^14 and 3 2^14: client_twiddles
// makes them together. Inverse exponents are 2^16 less those, the four in opposite order.
//
// A layer reads its first lines in the cycle after the last write of the layer before: N/8 + 14 cycles per layer, and 8
// more for the last one, so log2(N) (N/8 + 14) + 8 from the cycle after the start to `done_o`.
module client_ntt #(
    parameter int unsigned LogN = 16,
    parameter int unsigned Cores = 3
) (
    input  logic                         clk_i,
    input  logic                         rst_ni,
    input  logic                         start_i,
    input  logic                         stop_i,           // abandons the transform
    input  logic                         inverse_i,        // keeps still until done
    output logic                         busy_o,
    output logic                         done_o,           // for one cycle
    output logic [1:0]                   read_o,
    output logic [1:0][LogN-4:0]         read_address_o,
    input  logic [Cores-1:0][1:0][239:0] read_data_i,
    output logic [1:0]                   write_o,
    output logic [1:0][LogN-4:0]         write_address_o,
    output logic [Cores-1:0][1:0][239:0] write_data_o
);
  // Cycles after the issue of a pair: factors are made first, then lines are read to arrive with them.
  localparam int unsigned Read = 7;
  localparam int unsigned Write = Read + 2 + 1 + 11;  // memory, exchange, butterflies
  localparam int unsigned LineBits = LogN - 2;

  logic [LogN-4:0] pair_q;
  logic [3:0] layer_q;  // log2 of the distance
  logic issuing_q;
  logic [Write:1] valid_q;  // of pairs by age
  logic last_pair, last_layer, next_layer;

  assign last_pair  = pair_q == '1;
  assign last_layer = layer_q == (inverse_i ? 4'(LogN - 1) : 4'd0);
  assign next_layer = busy_o && !issuing_q && valid_q[Write-Read-1:1] == '0 && !last_layer;
  assign done_o     = busy_o && !issuing_q && valid_q == '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {busy_o, issuing_q, valid_q, pair_q, layer_q} <= '0;
    end else if (stop_i) begin
      {busy_o, issuing_q, valid_q, pair_q, layer_q} <= '0;
    end else begin
      valid_q <= {valid_q[Write-1:1], issuing_q};
      if (start_i) begin
        {busy_o, issuing_q, pair_q} <= {2'b11, (LogN - 3)'(0)};
        layer_q <= inverse_i ? 4'd0 : 4'(LogN - 1);
      end else if (issuing_q) begin
        pair_q <= pair_q + 1;
        if (last_pair) issuing_q <= 1'b0;
      end else if (next_layer) begin
        issuing_q <= 1'b1;
        layer_q <= inverse_i ? layer_q + 4'd1 : layer_q - 4'd1;
      end else if (done_o) begin
        busy_o <= 1'b0;
      end
    end
  end

  // Issue: line numbers and the exponent of the first factor.
  logic [3:0] place;
  logic [LineBits-1:0] low_line;
  logic [LineBits-1:1] high_line;  // bit 0 follows from the bank
  logic [15:0] index, exponent, exponent_q;
  logic [1:0] distance;

  assign place = layer_q > 4'd2 ? layer_q - 4'd2 : 4'd0;
  assign low_line = LineBits'({pair_q >> place, 1'b0} << place)
      | (LineBits'(pair_q) & ((LineBits'(1) << place) - 1'b1));
  assign high_line = (LineBits - 1)'((low_line | (LineBits'(1) << place)) >> 1);
  assign index = ((16'd1 << (LogN - 1)) | 16'({pair_q, 2'b0})) >> layer_q;
  assign distance = layer_q > 4'd2 ? 2'd2 : layer_q[1:0];

  always_comb begin
    for (int unsigned i = 0; i < 16; i++) exponent[i] = index[15-i];
    if (inverse_i) begin
      unique case (distance)
        2'd0: exponent = 16'h4000 - exponent;
        2'd1: exponent = 16'h8000 - exponent;
        default: exponent = 16'h0000 - exponent;
      endcase
    end
  end
  always_ff @(posedge clk_i) exponent_q <= exponent;

  // Factors, by butterfly.
  logic [3:0][59:0] factor, selected, selected_q;
  logic [1:0] factor_distance;
  client_twiddles u_twiddles (
      .clk_i, .exponent_i(exponent_q), .factor_o(factor)
  );
  delay_line #(
      .Width(2), .Depth(10)
  ) u_factor_distance (
      .clk_i, .rst_ni, .en_i(1'b1), .d_i(distance), .q_o(factor_distance)
  );
  always_comb begin
    unique case ({inverse_i, factor_distance})
      3'b000:  selected = factor;
      3'b001:  selected = {{2{factor[1]}}, {2{factor[0]}}};
      3'b100:  selected = {factor[0], factor[1], factor[2], factor[3]};
      3'b101:  selected = {{2{factor[0]}}, {2{factor[1]}}};
      default: selected = {4{factor[0]}};
    endcase
  end
  always_ff @(posedge clk_i) selected_q <= selected;

  // Lines: the parity of its number decides which bank holds the low one.
  logic [LineBits-1:0] low_read;
  logic [LineBits-1:1] high_read, low_write, high_write;  // bit 0 follows from the bank
  logic [1:0] distance_read, distance_core;
  logic parity_read, parity_core, parity_write;
  delay_line #(
      .Width(2 * LineBits + 1), .Depth(Read)
  ) u_read (
      .clk_i, .rst_ni, .en_i(1'b1), .d_i({distance, high_line, low_line}), .q_o({distance_read, high_read, low_read})
  );
  delay_line #(
      .Width(2 * LineBits - 1), .Depth(Write - Read)
  ) u_write (
      .clk_i, .rst_ni, .en_i(1'b1), .d_i({parity_read, high_read, low_read[LineBits-1:1]}),
      .q_o({parity_write, high_write, low_write})
  );
  delay_line #(
      .Width(3), .Depth(2)
  ) u_core (
      .clk_i, .rst_ni, .en_i(1'b1), .d_i({distance_read, parity_read}), .q_o({distance_core, parity_core})
  );
  assign read_o = {2{valid_q[Read]}};
  assign write_o = {2{valid_q[Write]}};
  assign parity_read = ^low_read;
  assign read_address_o = parity_read ? {low_read[LineBits-1:1], high_read} : {high_read, low_read[LineBits-1:1]};
  assign write_address_o = parity_write ? {low_write, high_write} : {high_write, low_write};

  logic [1:0] distance_core_q;
  always_ff @(posedge clk_i) distance_core_q <= distance_core;
  for (genvar m = 0; m < Cores; m++) begin : gen_core
    logic [239:0] low_q, high_q, low, high;
    always_ff @(posedge clk_i) begin
      low_q  <= read_data_i[m][parity_core];
      high_q <= read_data_i[m][!parity_core];
    end
    client_ntt_core u_core (
        .clk_i, .rst_ni, .inverse_i, .distance_i(distance_core_q), .low_i(low_q), .high_i(high_q),
        .factor_i(selected_q), .low_o(low), .high_o(high)
    );
    assign write_data_o[m][0] = parity_write ? high : low;
    assign write_data_o[m][1] = parity_write ? low : high;
  end
endmodule
