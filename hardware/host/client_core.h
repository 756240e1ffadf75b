/* Made by hardware/generate/registers.py from rtl/client/client_registers.toml. */
#ifndef KEYWRIGHT_CLIENT_CORE_H
#define KEYWRIGHT_CLIENT_CORE_H

#define KWCC_ID (0x00u) /* The constant 0x4343574B, the letters KWCC. */
#define KWCC_CONFIG (0x04u) /* What was synthesised. */
#define KWCC_CONFIG_LOG_N 0x1Fu /* log2 of the ring degree */
#define KWCC_CONTROL (0x08u) /* A one starts what its bit names. */
#define KWCC_CONTROL_ENCRYPT 0x1u /* encrypt one message: frames in are message, b; frames out c1, c0 */
#define KWCC_CONTROL_DECRYPT 0x2u /* decrypt one ciphertext: frames in are c0, c1, secret; frame out the plaintext */
#define KWCC_CONTROL_ABORT 0x4u /* end any operation, or the discarding of a faulty frame */
#define KWCC_STATUS (0x0Cu) /* What the core does. */
#define KWCC_STATUS_BUSY 0x1u /* an operation runs, the memories are being wiped or a faulty frame is thrown away */
#define KWCC_STATUS_DONE 0x2u /* the last operation ended with its result delivered; cleared by the next start */
#define KWCC_STATUS_DISCARDING 0x4u /* input is thrown away until the last beat of a faulty frame */
#define KWCC_ERROR (0x10u) /* Sticky. While a bit is set no operation starts. */
#define KWCC_ERROR_RANGE 0x1u /* a coefficient was not below q0 */
#define KWCC_ERROR_SHORT_FRAME 0x2u /* a last flag before beat N */
#define KWCC_ERROR_MISSING_LAST 0x4u /* no last flag at beat N */
#define KWCC_ERROR_ENTROPY 0x8u /* encryption without eight words of entropy written since the one before */
#define KWCC_ERROR_REFUSED 0x10u /* a start while busy or while an error was pending */
#define KWCC_ERROR_LOCKED 0x20u /* entropy or seed written while busy: ignored */
#define KWCC_ERROR_ABORTED 0x40u /* an operation was ended by ABORT */
#define KWCC_CYCLES (0x14u) /* Cycles of the last operation, from its start to the last beat of its result. */
#define KWCC_ENTROPY(i) (0x20u + 4 * (i)) /* 256 bits for the masks and errors of one encryption, least significant word first; wiped once they are sampled. */
#define KWCC_SEED(i) (0x40u + 4 * (i)) /* The public key's seed of its uniform half, least significant word first. */

#endif
