// Made by hardware/generate/registers.py from rtl/key_switch/key_switch_registers.toml.
package key_switch_registers_pkg;
  localparam logic [6:0] Id = 7'h00;
  localparam logic [6:0] Config = 7'h04;
  localparam int unsigned ConfigLogN = 0;
  localparam int unsigned ConfigLevel = 8;
  localparam int unsigned ConfigSlots = 16;
  localparam int unsigned ConfigAlpha = 24;
  localparam logic [6:0] Control = 7'h08;
  localparam int unsigned ControlEnable = 0;
  localparam int unsigned ControlReset = 1;
  localparam logic [6:0] Status = 7'h0c;
  localparam int unsigned StatusBusy = 0;
  localparam int unsigned StatusWaiting = 1;
  localparam logic [6:0] Error = 7'h10;
  localparam int unsigned ErrorRangeDigit = 0;
  localparam int unsigned ErrorRangeKey = 1;
  localparam int unsigned ErrorRangeAddend = 2;
  localparam int unsigned ErrorShortFrame = 3;
  localparam int unsigned ErrorMissingLast = 4;
  localparam int unsigned ErrorKeyLevel = 5;
  localparam logic [6:0] Done = 7'h14;
  localparam logic [6:0] Cycles = 7'h18;
  localparam int unsigned ErrorBits = 6;
endpackage
