/* Keywright's thin client in memory of the caller: no allocator, no operating system, primes below 2^30.
 *
 * Codes, kw_sink, kw_entropy, kw_compact and KW_INSECURE are those of keywright_client.h. There are no texts of errors.
 *
 * Ownership. A kw_bare belongs to the caller, who zeroes it before kw_bare_init and calls kw_bare_wipe before the memory
 * has another use. It refers to nothing: parameters, keys and buffers may go or change when a function has returned. It
 * must not be copied or moved, because two copies encrypt with the same randomness. Secrets are the caller's memory, too;
 * the functions wipe what they write to `first` and `second`, except a public key and a ciphertext, which are public.
 *
 * Re-entry. A kw_bare serves one call at a time. A second call, from a sink, an interrupt or another thread, fails with
 * KW_ERROR_ARGUMENT and changes nothing; kw_bare_capacity and the other queries are always allowed. Different kw_bare
 * may be used at the same time, with different buffers. Do not wipe one during a call: that does nothing.
 *
 * Lifetime. kw_entropy is called by kw_bare_init alone, for 32 bytes. A sink's bytes are valid during its call. After a
 * result other than KW_OK, what a sink has received is not an object, and readers refuse it.
 *
 * Objects have a kind, which is checked before anything that depends on it: bytes of another kind are KW_ERROR_FORMAT.
 */
#ifndef KEYWRIGHT_BARE_H
#define KEYWRIGHT_BARE_H

#include "keywright_client.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KW_BARE_BYTES 8192
typedef struct {
    uint64_t opaque[KW_BARE_BYTES / 8];
} kw_bare;

/* Makes a client of the parameters from the server and draws its randomness; `flags` as for kw_client_generate. Primes of
 * more than 30 bits are KW_ERROR_PARAMETERS. */
int kw_bare_init(kw_bare *bare, const uint8_t *parameters, size_t length, uint32_t flags, kw_entropy entropy, void *context);
/* Wipes it. Null and zeroed memory are allowed. */
void kw_bare_wipe(kw_bare *bare);

/* The most numbers in a ciphertext, bits of a number after the point, words of a polynomial, bytes of a secret. 0 for null
 * and for zeroed or wiped memory. */
size_t kw_bare_capacity(const kw_bare *bare);
uint32_t kw_bare_fraction_bits(const kw_bare *bare);
size_t kw_bare_words(const kw_bare *bare);
size_t kw_bare_secret_bytes(const kw_bare *bare);

/* Draws a secret of kw_bare_secret_bytes. */
int kw_bare_new_secret(kw_bare *bare, uint8_t *secret, size_t length);
/* Writes a secret as an object. Store it where only its owner can read it. */
int kw_bare_write_secret(kw_bare *bare, const uint8_t *secret, size_t length, kw_sink sink, void *context);

/* `first` and `second` are working memory of `words` words each, at least kw_bare_words, that do not overlap. */

/* Writes a new public key of a secret. */
int kw_bare_public_key(kw_bare *bare, const uint8_t *secret, size_t length, uint32_t *first, uint32_t *second, size_t words,
                       kw_sink sink, void *context);
/* Encrypts with a secret, into half the bytes. A null `compact` selects the whole ciphertext. */
int kw_bare_encrypt(kw_bare *bare, const uint8_t *secret, size_t length, const int64_t *numbers, size_t count,
                    const kw_compact *compact, uint32_t *first, uint32_t *second, size_t words, kw_sink sink, void *context);
/* Encrypts with a public key, which is read where it is, such as in flash memory. */
int kw_bare_encrypt_public(kw_bare *bare, const uint8_t *public_key, size_t length, const int64_t *numbers, size_t count,
                           const kw_compact *compact, uint32_t *first, uint32_t *second, size_t words, kw_sink sink,
                           void *context);

#ifdef __cplusplus
}
#endif

#endif
