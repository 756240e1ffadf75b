// Made by hardware/generate/registers.py from rtl/client/client_registers.toml.
package client_registers_pkg;
  localparam logic [6:0] Id = 7'h00;
  localparam logic [6:0] Config = 7'h04;
  localparam int unsigned ConfigLogN = 0;
  localparam logic [6:0] Control = 7'h08;
  localparam int unsigned ControlEncrypt = 0;
  localparam int unsigned ControlDecrypt = 1;
  localparam int unsigned ControlAbort = 2;
  localparam logic [6:0] Status = 7'h0c;
  localparam int unsigned StatusBusy = 0;
  localparam int unsigned StatusDone = 1;
  localparam int unsigned StatusDiscarding = 2;
  localparam logic [6:0] Error = 7'h10;
  localparam int unsigned ErrorRange = 0;
  localparam int unsigned ErrorShortFrame = 1;
  localparam int unsigned ErrorMissingLast = 2;
  localparam int unsigned ErrorEntropy = 3;
  localparam int unsigned ErrorRefused = 4;
  localparam int unsigned ErrorLocked = 5;
  localparam int unsigned ErrorAborted = 6;
  localparam logic [6:0] Cycles = 7'h14;
  localparam logic [6:0] Entropy = 7'h20;
  localparam int unsigned EntropyWords = 8;
  localparam logic [6:0] Seed = 7'h40;
  localparam int unsigned SeedWords = 8;
  localparam int unsigned ErrorBits = 7;
endpackage
