/* Keywright's thin client: integers in, ciphertexts modulo one prime out, and back.
 *
 * Numbers are integers in units of their last place; how many bits are after the point, and how many numbers a
 * ciphertext has, is in the parameters that a server hands out. Functions return KW_OK or a code below zero;
 * kw_last_error() says more. A pointer that is given must be valid for the length beside it. An object is in one call
 * at a time: one more, of another thread or of a sink, is refused with KW_ERROR_ARGUMENT, as two at once would encrypt
 * with the same randomness. kw_client_keys has its client until the first bytes come, and kw_client_capacity and
 * kw_client_fraction_bits are always allowed. Freeing an object that is in a call is a mistake. A forked child may use
 * its parent's objects, and draws nothing that another process draws. Of an object whose entropy was not the operating
 * system's it draws nothing: KW_ERROR_RANDOMNESS.
 */
#ifndef KEYWRIGHT_CLIENT_H
#define KEYWRIGHT_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KW_OK 0
/* A null pointer where there must be none, or an object that is in another call. */
#define KW_ERROR_ARGUMENT (-1)
/* No randomness, or that of a parent. */
#define KW_ERROR_RANDOMNESS (-2)
/* A number out of range, or too many of them. */
#define KW_ERROR_NUMBERS (-3)
/* Bytes that are damaged, cut short, of another kind, of other parameters or of another secret. */
#define KW_ERROR_FORMAT (-4)
/* Parameters that are not legal or not secure. */
#define KW_ERROR_PARAMETERS (-5)
/* The sink refused bytes. */
#define KW_ERROR_SINK (-6)
/* A mistake of this library. */
#define KW_ERROR_INTERNAL (-7)

/* The owner of a secret. */
typedef struct kw_client kw_client;
/* Somebody with the owner's public key. */
typedef struct kw_encryptor kw_encryptor;

/* Compact form: only the coefficients that carry numbers, without so many low bits of each half. Of a ciphertext made with the secret, whose second half is
 * a seed, dropped[1] is 0. */
typedef struct {
    uint32_t dropped[2];
} kw_compact;

/* Takes bytes as they are made; anything but 0 ends the work with KW_ERROR_SINK. */
typedef int (*kw_sink)(void *context, const uint8_t *bytes, size_t length);
/* Fills bytes with randomness of the platform; anything but 0 ends the work with KW_ERROR_RANDOMNESS. */
typedef int (*kw_entropy)(void *context, uint8_t *bytes, size_t length);

/* The last error of this thread, valid until the next call of a function of this header in it; an empty text if there was none. */
const char *kw_last_error(void);

/* A client with a new secret. `parameters` are the bytes that the server handed out; a null `entropy` is the operating system's. */
int kw_client_generate(const uint8_t *parameters, size_t length, kw_entropy entropy, void *context, kw_client **client);
/* A client with the secret that kw_client_secret wrote. */
int kw_client_from_secret(const uint8_t *parameters, size_t length, const uint8_t *secret, size_t secret_length,
                          kw_entropy entropy, void *context, kw_client **client);
/* Wipes the secret. Null is allowed. */
void kw_client_free(kw_client *client);
/* Most numbers in a ciphertext. 0 for null. */
size_t kw_client_capacity(const kw_client *client);
/* Bits after the point of a number. 0 for null. */
uint32_t kw_client_fraction_bits(const kw_client *client);
/* Writes the secret: for the owner's storage alone. */
int kw_client_secret(const kw_client *client, kw_sink sink, void *context);
/* Writes a new public key. */
int kw_client_public_key(kw_client *client, kw_sink sink, void *context);
/* Makes the evaluation keys that the head of a key set names, and writes them as a set, a part of at most half a megabyte at each call of the sink: 25 bytes of memory
 * for every coefficient, whatever the keys. `parameters` and `head` are those of the manifest of
 * keywright serve. A null `entropy` is the operating system's. */
int kw_client_keys(const kw_client *client, const uint8_t *parameters, size_t length, const uint8_t *head, size_t head_length,
                   kw_entropy entropy, void *entropy_context, kw_sink sink, void *context);
/* Encrypts with the secret: half the bytes. A null `compact` is the whole ciphertext. */
int kw_client_encrypt(kw_client *client, const int64_t *numbers, size_t count, const kw_compact *compact, kw_sink sink,
                      void *context);
/* Decrypts the first `count` numbers of an answer. */
int kw_client_decrypt(kw_client *client, const uint8_t *answer, size_t length, int64_t *numbers, size_t count);

/* An encryptor with a public key. */
int kw_encryptor_new(const uint8_t *parameters, size_t length, const uint8_t *public_key, size_t key_length,
                     kw_entropy entropy, void *context, kw_encryptor **encryptor);
/* Null is allowed. */
void kw_encryptor_free(kw_encryptor *encryptor);
/* Encrypts with the public key. A null `compact` is the whole ciphertext. */
int kw_encryptor_encrypt(kw_encryptor *encryptor, const int64_t *numbers, size_t count, const kw_compact *compact,
                         kw_sink sink, void *context);

#ifdef __cplusplus
}
#endif

#endif
