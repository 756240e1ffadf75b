/* Made by hardware/generate/registers.py from rtl/key_switch/key_switch_registers.toml. */
#ifndef KEYWRIGHT_KEY_SWITCH_H
#define KEYWRIGHT_KEY_SWITCH_H

#define KWKS_ID (0x00u) /* The constant 0x4B574B53, the letters KWKS. */
#define KWKS_CONFIG (0x04u) /* What was synthesised. */
#define KWKS_CONFIG_LOG_N 0x1Fu /* log2 of the ring degree */
#define KWKS_CONFIG_LEVEL 0xFF00u /* level of the ciphertexts and keys it takes */
#define KWKS_CONFIG_SLOTS 0xFF0000u /* polynomials' times between two results */
#define KWKS_CONFIG_ALPHA 0xF000000u /* primes of a digit, and special primes */
#define KWKS_CONTROL (0x08u) /* What the core may do. */
#define KWKS_CONTROL_ENABLE 0x1u /* take new key switches; those under way go on without it */
#define KWKS_CONTROL_RESET 0x2u /* write a one: drop everything under way, as the reset does; reads as zero */
#define KWKS_STATUS (0x0Cu) /* What the core does. */
#define KWKS_STATUS_BUSY 0x1u /* a key switch is under way */
#define KWKS_STATUS_WAITING 0x2u /* the pipeline waits for a port */
#define KWKS_ERROR (0x10u) /* Sticky. The results of the key switch concerned are refused. */
#define KWKS_ERROR_RANGE_DIGIT 0x1u /* a coefficient of the input was not below its modulus */
#define KWKS_ERROR_RANGE_KEY 0x2u /* a coefficient of the key was not below its modulus */
#define KWKS_ERROR_RANGE_ADDEND 0x4u /* a coefficient of an addend was not below its modulus */
#define KWKS_ERROR_SHORT_FRAME 0x8u /* a last flag before the last beat of a polynomial */
#define KWKS_ERROR_MISSING_LAST 0x10u /* no last flag at the last beat of a polynomial: beats are thrown away up to the next one */
#define KWKS_ERROR_KEY_LEVEL 0x20u /* a key for another level */
#define KWKS_DONE (0x14u) /* Key switches whose last result has left, modulo 2^32. */
#define KWKS_CYCLES (0x18u) /* Cycles between the ends of the last two key switches. */

#endif
