/* Bytes, files, and an exit on errors. */
#ifndef KEYWRIGHT_EXAMPLES_COMMON_H
#define KEYWRIGHT_EXAMPLES_COMMON_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keywright_client.h"

#define MOST_BYTES (64 << 20)

typedef struct {
    uint8_t *bytes;
    size_t length;
} buffer;

static inline void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static inline void check(int code) {
    if (code != KW_OK) fail("the client refused", kw_last_error());
}

static inline void *allocate(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (memory == NULL) fail("memory", "there is none left");
    return memory;
}

static inline int append(void *context, const uint8_t *bytes, size_t length) {
    buffer *b = context;
    uint8_t *larger = realloc(b->bytes, b->length + length);
    if (larger == NULL) return 1;
    memcpy(larger + b->length, bytes, length);
    b->bytes = larger;
    b->length += length;
    return 0;
}

static inline int to_file(void *context, const uint8_t *bytes, size_t length) {
    return fwrite(bytes, 1, length, context) != length;
}

static inline void wipe(uint8_t *bytes, size_t length) {
    volatile uint8_t *at = bytes;
    while (length-- > 0) *at++ = 0;
}

static inline FILE *open_file(const char *path, const char *mode) {
    FILE *file = fopen(path, mode);
    if (file == NULL) fail(path, "cannot be opened");
    return file;
}

static inline void close_file(FILE *file, const char *path) {
    if (fclose(file) != 0) fail(path, "cannot be written");
}

static inline buffer read_file(const char *path) {
    FILE *file = open_file(path, "rb");
    buffer all = {0};
    uint8_t piece[65536];
    size_t length;
    while ((length = fread(piece, 1, sizeof piece, file)) > 0) {
        if (all.length + length > MOST_BYTES) fail(path, "is longer than anything that is expected");
        if (append(&all, piece, length) != 0) fail("memory", "there is none left");
    }
    if (ferror(file)) fail(path, "cannot be read");
    wipe(piece, sizeof piece);
    fclose(file);
    return all;
}

static inline char *join(const char *folder, const char *name) {
    char *path = allocate(strlen(folder) + strlen(name) + 2, 1);
    sprintf(path, "%s/%s", folder, name);
    return path;
}

#endif
