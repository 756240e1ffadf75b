/* The owner of a picture, with the thin client: makes keys, encrypts the picture, and reads the class from the
 * decrypted answer. The caller sends the data between the steps: examples/c_client.py asks keywright serve.
 *
 *   classify [--insecure] keys MODEL SECRET KEYS                 a new secret, and the keys that the model needs
 *   classify [--insecure] encrypt MODEL SECRET IMAGE MESSAGE     a picture to the message that is sent
 *   classify [--insecure] decrypt MODEL SECRET ANSWER            an answer to the class
 *
 * Parameters below 128 bits of security are refused without --insecure: the server that chose them could read the picture.
 *
 * MODEL is a folder with the content of the server's manifest: its objects client.kw, parameters.kw and keys.kw, and
 * places.txt, in decimal numbers
 *
 *   log2 of the divisor of inputs
 *   ciphertexts size repeat stride count, and `count` starts, of the input
 *   the same of the output
 *
 * followed by a label for each output, one a line, or none. Value i is at start[i] + k stride for all k < repeat; place
 * p is number p % size of ciphertext p / size. IMAGE is a binary PGM or PPM of 8 bits; its channels are the planes of
 * the input, each pixel divided by 255. */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <sys/stat.h>

#include "common.h"

#define MOST_PLACES (1 << 20)
#define MOST_SHIFT 30

typedef struct {
    long ciphertexts, size, repeat, stride, count;
    long *start;
} places;

typedef struct {
    buffer client, parameters, head;
    long log_divisor;
    places input, output;
    char (*labels)[208];
    uint32_t flags;
} model;

static long number(FILE *file, const char *what, long low, long high) {
    long value;
    if (fscanf(file, "%ld", &value) != 1 || value < low || value > high) fail(what, "is missing or out of range");
    return value;
}

static places read_places(FILE *file) {
    places p;
    p.ciphertexts = number(file, "ciphertexts of places.txt", 1, 1024);
    p.size = number(file, "size of places.txt", 1, 1 << 17);
    p.repeat = number(file, "repeat of places.txt", 1, p.size);
    p.stride = number(file, "stride of places.txt", 1, p.size);
    p.count = number(file, "count of places.txt", 1, MOST_PLACES);
    p.start = allocate((size_t)p.count, sizeof *p.start);
    long last = p.ciphertexts * p.size - 1 - (p.repeat - 1) * p.stride;
    for (long i = 0; i < p.count; i++) p.start[i] = number(file, "a start of places.txt", 0, last);
    return p;
}

static model read_model(const char *folder, uint32_t flags) {
    model m = {.flags = flags};
    char *client = join(folder, "client.kw"), *parameters = join(folder, "parameters.kw");
    char *head = join(folder, "keys.kw"), *text = join(folder, "places.txt");
    m.client = read_file(client);
    m.parameters = read_file(parameters);
    m.head = read_file(head);
    FILE *file = open_file(text, "r");
    m.log_divisor = number(file, "log2 of the divisor of places.txt", -MOST_SHIFT, MOST_SHIFT);
    m.input = read_places(file);
    m.output = read_places(file);
    m.labels = allocate((size_t)m.output.count, sizeof *m.labels);
    for (long i = 0; i < m.output.count; i++) {
        if (fscanf(file, " %207[^\n]", m.labels[i]) != 1) snprintf(m.labels[i], sizeof *m.labels, "%ld", i);
    }
    fclose(file);
    free(client), free(parameters), free(head), free(text);
    return m;
}

static kw_client *read_client(const model *m, const char *path) {
    buffer secret = read_file(path);
    kw_client *client = NULL;
    check(kw_client_from_secret(m->client.bytes, m->client.length, m->flags, secret.bytes, secret.length, NULL, NULL,
                                &client));
    if ((long)kw_client_capacity(client) < m->input.size || (long)kw_client_capacity(client) < m->output.size)
        fail("places.txt", "names more numbers than a ciphertext has");
    wipe(secret.bytes, secret.length);
    free(secret.bytes);
    return client;
}

static void make_keys(const model *m, const char *secret_path, const char *keys_path) {
    kw_client *client = NULL;
    check(kw_client_generate(m->client.bytes, m->client.length, m->flags, NULL, NULL, &client));
    FILE *secret = open_file(secret_path, "wb"), *keys = open_file(keys_path, "wb");
    check(kw_client_secret(client, to_file, secret));
    close_file(secret, secret_path);
    check(kw_client_keys(client, m->parameters.bytes, m->parameters.length, m->head.bytes, m->head.length, NULL, NULL,
                         NULL, to_file, keys));
    close_file(keys, keys_path);
    kw_client_free(client);
}

/* A number of a picture's header, which may have comments before it. */
static long header_number(FILE *file, const char *path, long high) {
    int c;
    while ((c = fgetc(file)) == '#' || c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        if (c == '#') {
            while ((c = fgetc(file)) != '\n' && c != EOF) {
            }
        }
    }
    ungetc(c, file);
    return number(file, path, 1, high);
}

static uint8_t *read_picture(const char *path, long count, long *channels) {
    FILE *file = open_file(path, "rb");
    int p = fgetc(file), kind = fgetc(file);
    if (p != 'P' || (kind != '5' && kind != '6')) fail(path, "is no binary PGM or PPM");
    *channels = kind == '5' ? 1 : 3;
    long width = header_number(file, path, MOST_PLACES), height = header_number(file, path, MOST_PLACES);
    if (header_number(file, path, 65535) != 255) fail(path, "has other pixels than of 8 bits");
    fgetc(file);
    if ((int64_t)width * height * *channels != count) fail(path, "has another size than the model takes");
    uint8_t *pixels = allocate((size_t)count, 1);
    if (fread(pixels, 1, (size_t)count, file) != (size_t)count) fail(path, "ends early");
    fclose(file);
    return pixels;
}

static void encrypt(const model *m, kw_client *client, const char *image, const char *message) {
    const places *in = &m->input;
    long channels;
    uint8_t *pixels = read_picture(image, in->count, &channels);
    long area = in->count / channels;
    size_t total = (size_t)(in->ciphertexts * in->size);
    int64_t *numbers = allocate(total, sizeof *numbers);
    /* A white pixel is `one / unit`: 1, over the divisor, in units of the fraction. */
    int64_t one = (int64_t)1 << (kw_client_fraction_bits(client) - (m->log_divisor < 0 ? m->log_divisor : 0));
    int64_t unit = (int64_t)255 << (m->log_divisor > 0 ? m->log_divisor : 0);
    for (long i = 0; i < in->count; i++) {
        int64_t pixel = pixels[i % area * channels + i / area];
        int64_t value = (pixel * one + unit / 2) / unit;
        for (long k = 0; k < in->repeat; k++) numbers[in->start[i] + k * in->stride] = value;
    }
    FILE *file = open_file(message, "wb");
    /* The coefficients that carry numbers, with all their bits. */
    kw_compact compact = {{0, 0}};
    for (long i = 0; i < in->ciphertexts; i++) {
        buffer ciphertext = {0};
        check(kw_client_encrypt(client, numbers + i * in->size, (size_t)in->size, &compact, append, &ciphertext));
        /* Before each ciphertext its length, little-endian. */
        uint8_t length[4];
        for (int byte = 0; byte < 4; byte++) length[byte] = (uint8_t)(ciphertext.length >> (8 * byte));
        if (to_file(file, length, 4) != 0 || to_file(file, ciphertext.bytes, ciphertext.length) != 0)
            fail(message, "cannot be written");
        free(ciphertext.bytes);
    }
    close_file(file, message);
    free(numbers), free(pixels);
}

static void decrypt(const model *m, kw_client *client, const char *path) {
    const places *out = &m->output;
    buffer answer = read_file(path);
    size_t total = (size_t)(out->ciphertexts * out->size), place = 0;
    int64_t *numbers = allocate(total, sizeof *numbers);
    for (long i = 0; i < out->ciphertexts; i++) {
        if (answer.length - place < 4) fail(path, "ends early");
        const uint8_t *at = answer.bytes + place;
        size_t length = at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
        place += 4;
        if (answer.length - place < length) fail(path, "ends early");
        check(kw_client_decrypt(client, answer.bytes + place, length, numbers + i * out->size, (size_t)out->size));
        place += length;
    }
    if (place != answer.length) fail(path, "has bytes left over");
    long best = 0;
    for (long i = 1; i < out->count; i++) {
        if (numbers[out->start[i]] > numbers[out->start[best]]) best = i;
    }
    printf("%ld %s\n", best, m->labels[best]);
    free(numbers), free(answer.bytes);
}

int main(int argc, char **argv) {
    const char *program = argv[0];
    uint32_t flags = 0;
    if (argc > 1 && strcmp(argv[1], "--insecure") == 0) {
        flags = KW_INSECURE;
        argc--, argv++;
    }
    const char *command = argc > 1 ? argv[1] : "";
    int keys = strcmp(command, "keys") == 0 && argc == 5;
    int encrypts = strcmp(command, "encrypt") == 0 && argc == 6;
    int decrypts = strcmp(command, "decrypt") == 0 && argc == 5;
    if (!keys && !encrypts && !decrypts) {
        fprintf(stderr,
                "usage: %s [--insecure] keys MODEL SECRET KEYS | encrypt MODEL SECRET IMAGE MESSAGE | decrypt MODEL SECRET "
                "ANSWER\n",
                program);
        return 2;
    }
    /* Only the owner may read a secret. */
    umask(077);
    model m = read_model(argv[2], flags);
    if (keys) {
        make_keys(&m, argv[3], argv[4]);
    } else {
        kw_client *client = read_client(&m, argv[3]);
        if (encrypts) encrypt(&m, client, argv[4], argv[5]);
        else decrypt(&m, client, argv[4]);
        kw_client_free(client);
    }
    free(m.parameters.bytes), free(m.head.bytes), free(m.client.bytes);
    free(m.input.start), free(m.output.start), free(m.labels);
    return 0;
}
