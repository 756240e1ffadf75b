// The tile of the device's multiplier: what one multiplies without a sign bit. DEVICE_XC7 and DEVICE_ECP5 name other
// devices than UltraScale+.
package device_pkg;
`ifdef DEVICE_XC7
  localparam int unsigned ATile = 24;  // DSP48E1, 25 x 18 signed
  localparam int unsigned BTile = 17;
`elsif DEVICE_ECP5
  localparam int unsigned ATile = 18;  // MULT18X18D
  localparam int unsigned BTile = 18;
`else
  localparam int unsigned ATile = 26;  // DSP48E2, 27 x 18 signed
  localparam int unsigned BTile = 17;
`endif
endpackage
