/* The owner makes keys, a sensor encrypts with the public one, and the owner decrypts. Usage: client PARAMETERS, a file
 * from a server. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keywright_client.h"

typedef struct {
    uint8_t *bytes;
    size_t length, room;
} buffer;

static int append(void *context, const uint8_t *bytes, size_t length) {
    buffer *b = context;
    if (b->length + length > b->room) {
        size_t room = 2 * (b->length + length);
        uint8_t *larger = realloc(b->bytes, room);
        if (larger == NULL) return 1;
        b->bytes = larger;
        b->room = room;
    }
    memcpy(b->bytes + b->length, bytes, length);
    b->length += length;
    return 0;
}

static int no_entropy(void *context, uint8_t *bytes, size_t length) {
    (void)context, (void)bytes, (void)length;
    return 1;
}

static void check(int code) {
    if (code != KW_OK) {
        fprintf(stderr, "error %d: %s\n", code, kw_last_error());
        exit(1);
    }
}

static void expect(int code, int wanted) {
    if (code != wanted || kw_last_error()[0] == '\0') {
        fprintf(stderr, "code %d instead of %d: %s\n", code, wanted, kw_last_error());
        exit(1);
    }
}

int main(int argc, char **argv) {
    uint8_t parameters[4096];
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (file == NULL) {
        fprintf(stderr, "usage: %s PARAMETERS\n", argv[0]);
        return 2;
    }
    size_t length = fread(parameters, 1, sizeof parameters, file);
    fclose(file);

    kw_client *owner = NULL;
    expect(kw_client_generate(parameters, length, 0, no_entropy, NULL, &owner), KW_ERROR_RANDOMNESS);
    expect(kw_client_generate(parameters, length - 1, 0, NULL, NULL, &owner), KW_ERROR_FORMAT);
    expect(kw_client_generate(NULL, length, 0, NULL, NULL, &owner), KW_ERROR_ARGUMENT);
    check(kw_client_generate(parameters, length, 0, NULL, NULL, &owner));

    buffer public_key = {0}, ciphertext = {0}, secret = {0};
    check(kw_client_public_key(owner, append, &public_key));
    kw_encryptor *sensor = NULL;
    check(kw_encryptor_new(parameters, length, 0, public_key.bytes, public_key.length, NULL, NULL, &sensor));

    size_t count = kw_client_capacity(owner);
    int64_t one = (int64_t)1 << kw_client_fraction_bits(owner);
    int64_t *numbers = calloc(count, sizeof *numbers), *back = calloc(count, sizeof *back);
    if (numbers == NULL || back == NULL) return 1;
    for (size_t i = 0; i < count; i++) numbers[i] = (int64_t)(i * 7919 % (2 * (size_t)one + 1)) - one;
    check(kw_encryptor_encrypt(sensor, numbers, count, NULL, append, &ciphertext));
    check(kw_client_decrypt(owner, ciphertext.bytes, ciphertext.length, back, count));
    int64_t worst = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t off = llabs(back[i] - numbers[i]);
        if (off > worst) worst = off;
    }
    printf("%zu numbers, %zu bytes, largest error %" PRId64 " of %" PRId64 "\n", count, ciphertext.length, worst, one);

    ciphertext.bytes[ciphertext.length / 2] ^= 1;
    expect(kw_client_decrypt(owner, ciphertext.bytes, ciphertext.length, back, count), KW_ERROR_FORMAT);
    numbers[3] = one + 1;
    expect(kw_client_encrypt(owner, numbers, count, NULL, append, &secret), KW_ERROR_NUMBERS);

    /* The same secret, loaded later. */
    check(kw_client_secret(owner, append, &secret));
    kw_client_free(owner);
    check(kw_client_from_secret(parameters, length, 0, secret.bytes, secret.length, NULL, NULL, &owner));
    ciphertext.length = 0;
    kw_compact compact = {{4, 1}};
    check(kw_encryptor_encrypt(sensor, numbers, 3, &compact, append, &ciphertext));
    check(kw_client_decrypt(owner, ciphertext.bytes, ciphertext.length, back, 3));

    kw_encryptor_free(sensor);
    kw_client_free(owner);
    free(numbers), free(back), free(public_key.bytes), free(ciphertext.bytes), free(secret.bytes);
    return 0;
}
