/* Keywright's thin client: integers in, ciphertexts modulo one prime out, and back.
 *
 * Numbers are integers in units of their last place. The parameters that a server supplies fix the bits after the point
 * and the count of numbers in a ciphertext. Functions return KW_OK or a negative code; kw_last_error() says more. A
 * pointer must be valid for the length passed with it.
 *
 * An object serves one call at a time. A second call, from another thread or from a sink, fails with KW_ERROR_ARGUMENT,
 * because both would encrypt with the same randomness. kw_client_keys holds its client until the first bytes come;
 * kw_client_capacity and kw_client_fraction_bits are always allowed. Do not free an object during a call.
 *
 * A forked child may use its parent's objects, and its randomness differs from that of every other process. If the
 * object's entropy did not come from the operating system, its calls that draw fail with KW_ERROR_RANDOMNESS.
 */
#ifndef KEYWRIGHT_CLIENT_H
#define KEYWRIGHT_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KW_OK 0
/* A required pointer is null, or the object is in another call. */
#define KW_ERROR_ARGUMENT (-1)
/* There is no randomness, or only that of a parent process. */
#define KW_ERROR_RANDOMNESS (-2)
/* A number is out of range, or there are too many. */
#define KW_ERROR_NUMBERS (-3)
/* Bytes are damaged, cut short, or of another kind, other parameters or another secret. */
#define KW_ERROR_FORMAT (-4)
/* Parameters are invalid or insecure, or the keys exceed the limits. */
#define KW_ERROR_PARAMETERS (-5)
/* The sink refused bytes. */
#define KW_ERROR_SINK (-6)
/* A bug of this library. */
#define KW_ERROR_INTERNAL (-7)

/* The owner of a secret. */
typedef struct kw_client kw_client;
/* A holder of the owner's public key. */
typedef struct kw_encryptor kw_encryptor;

/* Compact form: only the coefficients that carry numbers, without the `dropped` low bits of each half. dropped[1] must
 * be 0 for a ciphertext made with the secret, whose second half is a seed. */
typedef struct {
    uint32_t dropped[2];
} kw_compact;

/* A flag: accept parameters below 128 bits of security, for made-up data. Whoever chose them, such as the server, can read
 * what is encrypted. */
#define KW_INSECURE 1u

/* The most keys that a client makes for a server, and their most bytes. */
typedef struct {
    uint64_t key_bytes;
    uint64_t key_count;
} kw_limits;
/* What a null pointer to limits means: 32 GiB in 4,096 keys. */
#define KW_DEFAULT_KEY_BYTES ((uint64_t)32 << 30)
#define KW_DEFAULT_KEY_COUNT ((uint64_t)4096)

/* Receives bytes as they are made; any result but 0 ends the work with KW_ERROR_SINK. */
typedef int (*kw_sink)(void *context, const uint8_t *bytes, size_t length);
/* Fills bytes with randomness of the platform; any result but 0 ends the work with KW_ERROR_RANDOMNESS. */
typedef int (*kw_entropy)(void *context, uint8_t *bytes, size_t length);

/* The last error of this thread; an empty text if there was none. Valid until this thread calls another function of
 * this header. */
const char *kw_last_error(void);

/* Makes a client with a new secret. `parameters` are the bytes from the server. Those below 128 bits of security are
 * refused with KW_ERROR_PARAMETERS, unless `flags` is KW_INSECURE; it is 0 otherwise. A null `entropy` selects the
 * operating system's. */
int kw_client_generate(const uint8_t *parameters, size_t length, uint32_t flags, kw_entropy entropy, void *context,
                       kw_client **client);
/* Makes a client with the secret that kw_client_secret wrote. */
int kw_client_from_secret(const uint8_t *parameters, size_t length, uint32_t flags, const uint8_t *secret,
                          size_t secret_length, kw_entropy entropy, void *context, kw_client **client);
/* Wipes the secret. Null is allowed. */
void kw_client_free(kw_client *client);
/* The most numbers in a ciphertext. 0 for null. */
size_t kw_client_capacity(const kw_client *client);
/* Bits of a number after the point. 0 for null. */
uint32_t kw_client_fraction_bits(const kw_client *client);
/* Writes the secret. Store it where only its owner can read it. */
int kw_client_secret(const kw_client *client, kw_sink sink, void *context);
/* Writes a new public key. */
int kw_client_public_key(kw_client *client, kw_sink sink, void *context);
/* Makes the evaluation keys that the head of a key set names, and writes them as a set. Each call of the sink gets at
 * most half a megabyte. Takes 25 bytes of memory for every coefficient, whatever the keys. `parameters` and `head` come
 * from the manifest of keywright serve. Every key is checked for 128 bits of security, and all of them against `limits`,
 * before the first is made. A null `entropy` selects the operating system's, null `limits` the defaults. */
int kw_client_keys(const kw_client *client, const uint8_t *parameters, size_t length, const uint8_t *head, size_t head_length,
                   const kw_limits *limits, kw_entropy entropy, void *entropy_context, kw_sink sink, void *context);
/* Encrypts with the secret, into half the bytes. A null `compact` selects the whole ciphertext. */
int kw_client_encrypt(kw_client *client, const int64_t *numbers, size_t count, const kw_compact *compact, kw_sink sink,
                      void *context);
/* Decrypts the first `count` numbers of an answer. */
int kw_client_decrypt(kw_client *client, const uint8_t *answer, size_t length, int64_t *numbers, size_t count);

/* Makes an encryptor with a public key; `flags` as for kw_client_generate. */
int kw_encryptor_new(const uint8_t *parameters, size_t length, uint32_t flags, const uint8_t *public_key, size_t key_length,
                     kw_entropy entropy, void *context, kw_encryptor **encryptor);
/* Null is allowed. */
void kw_encryptor_free(kw_encryptor *encryptor);
/* Encrypts with the public key. A null `compact` selects the whole ciphertext. */
int kw_encryptor_encrypt(kw_encryptor *encryptor, const int64_t *numbers, size_t count, const kw_compact *compact,
                         kw_sink sink, void *context);

#ifdef __cplusplus
}
#endif

#endif
