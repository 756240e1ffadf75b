/* Children of a process that made a client and an encryptor: their encryptions share no randomness with those of the
 * parent. Usage: fork PARAMETERS. */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keywright_client.h"

enum { ROOM = 1 << 20, CHILDREN = 2, TAKEN = CHILDREN + 2 };

typedef struct {
    size_t length;
    uint8_t bytes[ROOM];
} buffer;

static int append(void *context, const uint8_t *bytes, size_t length) {
    buffer *b = context;
    if (length > ROOM - b->length) return 1;
    memcpy(b->bytes + b->length, bytes, length);
    b->length += length;
    return 0;
}

static int entropy(void *context, uint8_t *bytes, size_t length) {
    (void)context;
    for (size_t i = 0; i < length; i++) bytes[i] = (uint8_t)i;
    return 0;
}

static void expect(const char *what, int code, int wanted) {
    if (code != wanted) {
        fprintf(stderr, "%s: code %d instead of %d: %s\n", what, code, wanted, kw_last_error());
        exit(1);
    }
}

typedef int draw(void *object, buffer *out);

static int draw_secret(void *client, buffer *out) {
    return kw_client_encrypt(client, (int64_t[]){0}, 1, NULL, append, out);
}

static int draw_public(void *encryptor, buffer *out) {
    return kw_encryptor_encrypt(encryptor, (int64_t[]){0}, 1, NULL, append, out);
}

static int draw_key(void *client, buffer *out) { return kw_client_public_key(client, append, out); }

/* Draws in a child, or returns only its code if that is not the wanted one. */
static void in_child(const char *what, draw *made_by, void *object, int wanted, buffer *out) {
    int ends[2];
    if (pipe(ends) != 0) exit(1);
    pid_t child = fork();
    if (child < 0) exit(1);
    if (child == 0) {
        close(ends[0]);
        out->length = 0;
        expect(what, made_by(object, out), wanted);
        for (size_t at = 0; at < out->length;) {
            ssize_t written = write(ends[1], out->bytes + at, out->length - at);
            if (written <= 0) _exit(1);
            at += (size_t)written;
        }
        _exit(0);
    }
    close(ends[1]);
    out->length = 0;
    for (ssize_t got; (got = read(ends[0], out->bytes + out->length, ROOM - out->length)) > 0;) out->length += (size_t)got;
    close(ends[0]);
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) exit(1);
}

/* The residues of a half are pseudorandom. Two draws agree in hardly one byte of 256; repeated draws would agree in
 * all. */
static void compare(const char *what, const buffer *a, const buffer *b) {
    size_t equal = 0, header = 256;
    if (a->length != b->length || a->length < 2 * header) exit(1);
    for (size_t i = header; i < a->length; i++) equal += a->bytes[i] == b->bytes[i];
    if (equal > a->length / 64) {
        fprintf(stderr, "%s: %zu of %zu bytes are equal\n", what, equal, a->length);
        exit(1);
    }
}

static buffer taken[TAKEN];

static void apart(const char *what, draw *made_by, void *object) {
    for (int i = 0; i < TAKEN; i++) taken[i].length = 0;
    expect(what, made_by(object, &taken[0]), KW_OK);
    for (int i = 1; i <= CHILDREN; i++) in_child(what, made_by, object, KW_OK, &taken[i]);
    expect(what, made_by(object, &taken[TAKEN - 1]), KW_OK);
    for (int i = 0; i < TAKEN; i++)
        for (int j = 0; j < i; j++) compare(what, &taken[i], &taken[j]);
}

static void refused(const char *what, draw *made_by, void *object) {
    in_child(what, made_by, object, KW_ERROR_RANDOMNESS, &taken[0]);
    if (taken[0].length != 0) exit(1);
    expect(what, made_by(object, &taken[0]), KW_OK);
}

int main(int argc, char **argv) {
    static uint8_t parameters[4096];
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (file == NULL) return 2;
    size_t length = fread(parameters, 1, sizeof parameters, file);
    fclose(file);

    static buffer key;
    kw_client *owner = NULL, *given = NULL;
    kw_encryptor *sensor = NULL, *given_sensor = NULL;
    expect("owner", kw_client_generate(parameters, length, 0, NULL, NULL, &owner), KW_OK);
    expect("given", kw_client_generate(parameters, length, 0, entropy, NULL, &given), KW_OK);
    expect("key", kw_client_public_key(owner, append, &key), KW_OK);
    expect("sensor", kw_encryptor_new(parameters, length, 0, key.bytes, key.length, NULL, NULL, &sensor), KW_OK);
    expect("given sensor", kw_encryptor_new(parameters, length, 0, key.bytes, key.length, entropy, NULL, &given_sensor), KW_OK);

    apart("the secret", draw_secret, owner);
    apart("a public key", draw_key, owner);
    apart("the public key", draw_public, sensor);
    refused("the secret of given entropy", draw_secret, given);
    refused("a public key of given entropy", draw_key, given);
    refused("the public key of given entropy", draw_public, given_sensor);
    puts("apart");

    kw_client_free(owner), kw_client_free(given), kw_encryptor_free(sensor), kw_encryptor_free(given_sensor);
    return 0;
}
