/* A device's program: makes every object of one line of vectors/client.txt with keywright_bare.h, and compares it. Runs
 * on an emulated Cortex-M4 (embedded/cortex-m4) and as a test on the host. */
#include "keywright_bare.h"

#define MAX_N 65536
#define OBJECTS 6

/* Length and CRC-32 of an object. */
typedef struct {
    uint64_t length;
    uint64_t checksum;
} answer;

/* What a sink has received; the bytes too, as far as there is room. */
typedef struct {
    uint64_t length;
    uint32_t checksum;
    uint8_t *bytes;
    size_t room;
    kw_bare *bare;
} receiver;

static kw_bare owner, sensor;
static uint8_t secret[MAX_N / 4], public_key[MAX_N * 4];
static uint32_t first[MAX_N], second[MAX_N];
static int64_t numbers[MAX_N];

/* Counts up, as in the vectors: not random. */
static int counting(void *context, uint8_t *bytes, size_t length) {
    uint8_t *next = context;
    for (size_t i = 0; i < length; i++) bytes[i] = (*next)++;
    return 0;
}

static int receive(void *context, const uint8_t *bytes, size_t length) {
    receiver *to = context;
    /* A call from a sink is refused; a query is not. */
    if (kw_bare_new_secret(to->bare, secret, sizeof secret) != KW_ERROR_ARGUMENT || kw_bare_capacity(to->bare) == 0) return 1;
    for (size_t i = 0; i < length; i++) {
        if (to->length + i < to->room) to->bytes[to->length + i] = bytes[i];
        to->checksum ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) to->checksum = to->checksum >> 1 ^ (to->checksum & 1 ? 0xEDB88320u : 0);
    }
    to->length += length;
    return 0;
}

static receiver fresh(kw_bare *bare, uint8_t *bytes, size_t room) {
    receiver to = {0, 0xFFFFFFFFu, bytes, room, bare};
    return to;
}

static int same(const receiver *made, const answer *known) {
    return made->length == known->length && ~made->checksum == (uint32_t)known->checksum;
}

static int refuses(const uint8_t *parameters, size_t length) {
    uint8_t start = 1;
    receiver to = fresh(&owner, 0, 0);
    return kw_bare_capacity(0) == 0 && kw_bare_capacity(&owner) == 0 && kw_bare_fraction_bits(&owner) == 0 &&
           kw_bare_new_secret(&owner, secret, 256) == KW_ERROR_ARGUMENT &&
           kw_bare_init(0, parameters, length, KW_INSECURE, counting, &start) == KW_ERROR_ARGUMENT &&
           kw_bare_init(&owner, parameters, length, 2, counting, &start) == KW_ERROR_ARGUMENT &&
           kw_bare_init(&owner, parameters, length, KW_INSECURE, 0, 0) == KW_ERROR_ARGUMENT &&
           kw_bare_init(&owner, 0, length, KW_INSECURE, counting, &start) == KW_ERROR_ARGUMENT &&
           kw_bare_init(&owner, parameters, length - 1, KW_INSECURE, counting, &start) == KW_ERROR_FORMAT &&
           kw_bare_write_secret(&owner, secret, 256, receive, &to) == KW_ERROR_ARGUMENT;
}

/* 0 if all is as known; otherwise the number of the step that is not. */
int known_answers(const uint8_t *parameters, size_t length, uint32_t fraction_bits, const answer *answers) {
    const kw_compact by_secret = {{2, 0}}, by_key = {{4, 1}};
    uint8_t ones = 1, twos = 2;
    if (!refuses(parameters, length)) return 1;
    if (kw_bare_init(&owner, parameters, length, KW_INSECURE, counting, &ones)) return 2;
    size_t n = kw_bare_words(&owner), count = kw_bare_capacity(&owner), bytes = kw_bare_secret_bytes(&owner);
    if (n > MAX_N || count > MAX_N || bytes > sizeof secret || kw_bare_fraction_bits(&owner) != fraction_bits) return 3;
    uint32_t max = 1u << fraction_bits;
    for (size_t i = 0; i < count; i++) numbers[i] = (int64_t)((uint32_t)(7919 * i) % (2 * max + 1)) - max;

    receiver to = fresh(&owner, 0, 0);
    if (kw_bare_new_secret(&owner, secret, bytes)) return 4;
    if (kw_bare_write_secret(&owner, secret, bytes, receive, &to) || !same(&to, &answers[0])) return 5;
    to = fresh(&owner, public_key, sizeof public_key);
    if (kw_bare_public_key(&owner, secret, bytes, first, second, n, receive, &to) || !same(&to, &answers[1])) return 6;
    size_t key_length = (size_t)to.length;
    to = fresh(&owner, 0, 0);
    if (kw_bare_encrypt(&owner, secret, bytes, numbers, count, 0, first, second, n, receive, &to)) return 7;
    if (!same(&to, &answers[2])) return 8;
    to = fresh(&owner, 0, 0);
    if (kw_bare_encrypt(&owner, secret, bytes, numbers, count, &by_secret, first, second, n, receive, &to)) return 9;
    if (!same(&to, &answers[3])) return 10;

    if (kw_bare_init(&sensor, parameters, length, KW_INSECURE, counting, &twos)) return 11;
    to = fresh(&sensor, 0, 0);
    /* Of another kind, too short, too many. */
    if (kw_bare_encrypt_public(&sensor, parameters, length, numbers, count, 0, first, second, n, receive, &to) !=
            KW_ERROR_FORMAT ||
        kw_bare_encrypt_public(&sensor, public_key, key_length, numbers, count, 0, first, second, n - 1, receive, &to) !=
            KW_ERROR_ARGUMENT ||
        kw_bare_encrypt_public(&sensor, public_key, key_length, numbers, count + 1, 0, first, second, n, receive, &to) !=
            KW_ERROR_NUMBERS ||
        to.length != 0)
        return 12;
    if (kw_bare_encrypt_public(&sensor, public_key, key_length, numbers, count, 0, first, second, n, receive, &to)) return 13;
    if (!same(&to, &answers[4])) return 14;
    to = fresh(&sensor, 0, 0);
    if (kw_bare_encrypt_public(&sensor, public_key, key_length, numbers, count, &by_key, first, second, n, receive, &to))
        return 15;
    if (!same(&to, &answers[5])) return 16;

    kw_bare_wipe(&owner);
    kw_bare_wipe(&sensor);
    for (size_t i = 0; i < KW_BARE_BYTES / 8; i++)
        if (owner.opaque[i] | sensor.opaque[i]) return 17;
    return 0;
}
