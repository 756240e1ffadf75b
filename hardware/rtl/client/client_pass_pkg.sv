// The passes of client_core: each takes all N coefficients once and computes x B + A, one per cycle.
//
// | pass           | x      | B    | A    | result  | wiped behind  |
// | LoadMessage    | stream | 1    | e_0  | M0      | (M1 = e_1, M2 = v from the samplers) |
// | AnswerC1       | pk_1   | M2   | M1   | stream  | M1            |
// | AnswerC0       | stream | M2   | M0   | stream  | M0, M2        |
// | LoadC0         | stream | 1    | 0    | M0      |               |
// | LoadC1         | stream | 1    | 0    | M1      |               |
// | MultiplySecret | stream | M1   | M0   | M0      | M1            |
// | AnswerPlain    | 1      | M0   | 0    | stream  | M0            |
package client_pass_pkg;
  localparam logic [2:0] LoadMessage = 3'd0;
  localparam logic [2:0] AnswerC1 = 3'd1;
  localparam logic [2:0] AnswerC0 = 3'd2;
  localparam logic [2:0] LoadC0 = 3'd3;
  localparam logic [2:0] LoadC1 = 3'd4;
  localparam logic [2:0] MultiplySecret = 3'd5;
  localparam logic [2:0] AnswerPlain = 3'd6;
endpackage
