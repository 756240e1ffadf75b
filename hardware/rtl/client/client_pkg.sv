// What the client's arithmetic has in common.
package client_pkg;
  // q0 = 2^60 - c with c < 2^FoldWidth: the folds of a product need no more.
  localparam int unsigned FoldWidth = 18;
endpackage
