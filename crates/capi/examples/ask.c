/* Sends a sample of its owner to keywright serve, with the thin client, libcurl and cJSON, and prints the scores of a
 * model on numbers that the server never sees.
 *
 *   ask [--insecure] [--key-bytes N] [--key-count N] URL FOLDER SAMPLE
 *
 * FOLDER keeps the owner's data: the secret, and which of its keys the server has. SAMPLE has the numbers of a sample,
 * as text. The program prints the scores, one a line, each with its label if the model has labels.
 *
 * The server chooses the parameters and the keys. Those below 128 bits of security are refused, unless --insecure says that
 * the numbers are made up; so are more than N bytes of keys (32 GiB) and more than N keys (4096). Keys go to URL alone.
 *
 * The program recovers from what a server forgets. It makes and sends keys again that expired or were deleted
 * ("unknown_keys"). It follows a model that is no longer served to its successor ("retired") if that takes the same
 * inputs, with new keys unless the configuration is the same. It retries broken connections, and resumes a piece of the keys at the byte that the server
 * expects.
 *
 *   cc -std=c11 -I crates/capi/include crates/capi/examples/ask.c target/release/libkeywright_capi.a \
 *     -lcurl -lcjson -lpthread -ldl -lm -o ask */
#define _POSIX_C_SOURCE 200809L

#include <cjson/cJSON.h>
#include <curl/curl.h>
#include <inttypes.h>
#include <math.h>
#include <sys/stat.h>
#include <time.h>

#include "common.h"

#define MOST_PLACES (1 << 17)
/* Most numbers of a sample or of its scores for which there is memory. */
#define MOST_NUMBERS (1 << 24)
#define MOST_MANIFEST (16 << 20)
#define MOST_JSON (1 << 20)
/* Most bytes of an answer's status line and headers. */
#define MOST_HEAD (1 << 16)
#define PIECE (4 << 20)
#define RETRIES 5
#define RENEWALS 3
#define POLL_MS 50
/* Characters of a hash, and of an identifier of keys. */
#define HASH 64
#define IDENTIFIER 32

typedef struct {
    CURL *curl;
    const char *url;
    /* The folder of the secret and of `session`. */
    const char *folder;
    /* What is accepted of the server. */
    uint32_t flags;
    kw_limits limits;
    /* Hashes of the model and of the configuration of its keys; empty if unknown. */
    char model[HASH + 1], configuration[HASH + 1];
    /* Identifier of the keys that the server has; empty if there are none. */
    char keys[IDENTIFIER + 1];
    /* What the first manifest says of inputs. */
    cJSON *inputs;
    /* Code of the last refusal; empty after an answer. */
    char refusal[64], successor[HASH + 1], successor_configuration[HASH + 1];
} asker;

typedef struct {
    int ciphertexts, size, repeat, stride, count;
    int *start;
} places;

typedef struct {
    buffer client, parameters, head;
    double divisor, factor;
    places input, output;
    cJSON *json;
} manifest;

/* An answer of the server: its bytes, how many are accepted, and the bytes of its head. */
typedef struct {
    buffer bytes;
    size_t most, head;
} answer;

static void pause_ms(long milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static size_t take(char *bytes, size_t size, size_t count, void *context) {
    answer *a = context;
    size_t length = size * count;
    if (a->bytes.length + length > a->most || append(&a->bytes, (uint8_t *)bytes, length) != 0) return 0;
    return length;
}

static size_t take_head(char *bytes, size_t size, size_t count, void *context) {
    (void)bytes;
    answer *a = context;
    a->head += size * count;
    return a->head > MOST_HEAD ? 0 : size * count;
}

/* A text of exactly `length` hexadecimal digits; otherwise an empty one. */
static void copy_text(const char *text, char *out, size_t length) {
    int good = text != NULL && strlen(text) == length && strspn(text, "0123456789abcdef") == length;
    memcpy(out, good ? text : "", good ? length + 1 : 1);
}

static void copy_hex(const cJSON *item, char *out, size_t length) { copy_text(cJSON_GetStringValue(item), out, length); }

/* Whether UTF-8 has no control characters, of which a terminal would obey some. */
static int is_printable(const char *text) {
    for (const unsigned char *at = (const unsigned char *)text; *at != 0; at++)
        if (*at < 0x20 || *at == 0x7f || (*at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0)) return 0;
    return 1;
}

/* Notes why a request was refused. */
static void read_refusal(asker *a, const buffer *body) {
    cJSON *json = cJSON_ParseWithLength((const char *)body->bytes, body->length);
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(json, "error");
    const cJSON *details = cJSON_GetObjectItemCaseSensitive(error, "details");
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(error, "type"));
    const char *message = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(error, "message"));
    snprintf(a->refusal, sizeof a->refusal, "%s", type != NULL ? type : "no_reason");
    if (message == NULL || !is_printable(message)) message = "nothing but that it refuses";
    fprintf(stderr, "the server says: %.500s\n", message);
    copy_hex(cJSON_GetObjectItemCaseSensitive(details, "successor"), a->successor, HASH);
    copy_hex(cJSON_GetObjectItemCaseSensitive(details, "configuration"), a->successor_configuration, HASH);
    cJSON_Delete(json);
}

/* One request; `offset` is the header field of a piece of keys. Returns 0 if it was answered, 1 if it was refused, 2 if no server was reached. */
static int request_once(asker *a, const char *method, const char *path, const buffer *body, const char *offset, answer *out) {
    char url[2048];
    snprintf(url, sizeof url, "%s%s", a->url, path);
    out->bytes.length = out->head = 0;
    curl_easy_reset(a->curl);
    curl_easy_setopt(a->curl, CURLOPT_URL, url);
    curl_easy_setopt(a->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(a->curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(a->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(a->curl, CURLOPT_CONNECTTIMEOUT, 10L);
    curl_easy_setopt(a->curl, CURLOPT_LOW_SPEED_LIMIT, 1024L);
    curl_easy_setopt(a->curl, CURLOPT_LOW_SPEED_TIME, 60L);
    curl_easy_setopt(a->curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(a->curl, CURLOPT_WRITEDATA, out);
    curl_easy_setopt(a->curl, CURLOPT_HEADERFUNCTION, take_head);
    curl_easy_setopt(a->curl, CURLOPT_HEADERDATA, out);
    /* A server that redirects chooses another place for the keys. */
    curl_easy_setopt(a->curl, CURLOPT_FOLLOWLOCATION, 0L);
    const char *type = offset == NULL ? "Content-Type: application/octet-stream" : "Content-Type: application/partial-upload";
    struct curl_slist *headers = curl_slist_append(NULL, type);
    headers = curl_slist_append(headers, "Expect:");
    if (offset != NULL) headers = curl_slist_append(headers, offset);
    if (body != NULL) {
        curl_easy_setopt(a->curl, CURLOPT_POSTFIELDS, body->bytes);
        curl_easy_setopt(a->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->length);
    }
    curl_easy_setopt(a->curl, CURLOPT_HTTPHEADER, headers);
    CURLcode code = curl_easy_perform(a->curl);
    curl_slist_free_all(headers);
    if (code != CURLE_OK) return 2;
    long status = 0;
    curl_easy_getinfo(a->curl, CURLINFO_RESPONSE_CODE, &status);
    a->refusal[0] = 0;
    if (status >= 200 && status < 300) return 0;
    read_refusal(a, &out->bytes);
    return strcmp(a->refusal, "busy") == 0 ? 2 : 1;
}

/* Makes a request, and repeats it a few times while no server is reached or the server has no room. Returns 0 if it was
 * answered, 1 if it was refused. */
static int request(asker *a, const char *method, const char *path, const buffer *body, answer *out) {
    for (int failures = 0;; failures++) {
        int found = request_once(a, method, path, body, NULL, out);
        if (found < 2) return found;
        if (failures == RETRIES) fail(a->url, "cannot be reached, or has no room; ask again later");
        pause_ms(100L << failures);
    }
}

/* A request whose answer is a JSON object of at most `most` bytes; null if it was refused. */
static cJSON *request_object(asker *a, const char *method, const char *path, const buffer *body, size_t most) {
    answer out = {.most = most};
    cJSON *json = NULL;
    if (request(a, method, path, body, &out) == 0) {
        json = cJSON_ParseWithLength((const char *)out.bytes.bytes, out.bytes.length);
        if (!cJSON_IsObject(json)) fail(path, "is not answered by a JSON object; is this keywright serve?");
    }
    free(out.bytes.bytes);
    return json;
}

static cJSON *request_json(asker *a, const char *method, const char *path, const buffer *body) {
    return request_object(a, method, path, body, MOST_JSON);
}

static int is_refused(const asker *a, const char *why) { return strcmp(a->refusal, why) == 0; }

/* The session: the model, its configuration, and the keys that the server has. */
static void store_session(const asker *a) {
    char *path = join(a->folder, "session");
    FILE *file = open_file(path, "w");
    fprintf(file, "%s.\n%s.\n%s.\n", a->model, a->configuration, a->keys);
    close_file(file, path);
    free(path);
}

static void load_session(asker *a) {
    char *path = join(a->folder, "session");
    FILE *file = fopen(path, "r");
    char lines[3][HASH + 3] = {{0}};
    for (int i = 0; file != NULL && i < 3; i++) {
        if (fgets(lines[i], sizeof lines[i], file) == NULL) break;
        lines[i][strcspn(lines[i], ".\n")] = 0;
    }
    copy_text(lines[0], a->model, HASH);
    copy_text(lines[1], a->configuration, HASH);
    copy_text(lines[2], a->keys, IDENTIFIER);
    if (file != NULL) fclose(file);
    free(path);
}

/* Selects the first model that is served. A client for one model pins its hash instead, the SHA-256 of its manifest. */
static void choose_model(asker *a) {
    cJSON *json = request_json(a, "GET", "/v1/models", NULL);
    const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(json, "models"), 0);
    copy_hex(cJSON_GetObjectItemCaseSensitive(first, "model"), a->model, HASH);
    if (a->model[0] == 0) fail(a->url, "names no model");
    cJSON_Delete(json);
}

/* Moves to the successor of this model. Keys of its configuration stay. */
static void follow(asker *a) {
    if (a->successor[0] == 0) fail(a->model, "is no longer served and has no successor");
    if (strcmp(a->configuration, a->successor_configuration) != 0) a->keys[0] = a->configuration[0] = 0;
    memcpy(a->model, a->successor, sizeof a->model);
}

static double real(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!cJSON_IsNumber(item) || !(item->valuedouble > 0) || !isfinite(item->valuedouble)) fail(name, "is no number above 0");
    return item->valuedouble;
}

static int integer(const cJSON *item, const char *what, int low, int high) {
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= low && item->valuedouble <= high) || item->valuedouble != item->valueint)
        fail(what, "is missing in the manifest, or out of range");
    return item->valueint;
}

static int field(const cJSON *object, const char *name, int low, int high) {
    return integer(cJSON_GetObjectItemCaseSensitive(object, name), name, low, high);
}

static places read_places(const cJSON *object) {
    places p;
    p.ciphertexts = field(object, "ciphertexts", 1, 1024);
    int most = MOST_NUMBERS / p.ciphertexts;
    p.size = field(object, "size", 1, most < MOST_PLACES ? most : MOST_PLACES);
    p.repeat = field(object, "repeat", 1, p.size);
    p.stride = field(object, "stride", 1, p.size);
    if (field(object, "batch", 1, p.size) != 1) fail("the model", "takes several samples at a time, this program one");
    const cJSON *start = cJSON_GetObjectItemCaseSensitive(object, "start");
    p.count = cJSON_GetArraySize(start);
    if (p.count < 1 || p.count > MOST_PLACES) fail("start", "is missing in the manifest, or too long");
    p.start = allocate((size_t)p.count, sizeof *p.start);
    if ((int64_t)p.count * p.repeat > (int64_t)p.ciphertexts * p.size) fail("start", "names more values than there are places");
    int64_t last = (int64_t)p.ciphertexts * p.size - 1 - (int64_t)(p.repeat - 1) * p.stride;
    int i = 0;
    for (const cJSON *item = start->child; item != NULL; item = item->next) p.start[i++] = integer(item, "a start", 0, (int)last);
    return p;
}

static buffer base64(const cJSON *object, const char *name) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
    if (text == NULL) fail(name, "is missing in the manifest");
    buffer out = {allocate(strlen(text), 1), 0};
    uint32_t bits = 0;
    int filled = 0;
    for (; *text != 0 && *text != '='; text++) {
        const char *digit = strchr(digits, *text);
        if (digit == NULL) fail(name, "is not base64");
        bits = bits << 6 | (uint32_t)(digit - digits);
        filled += 6;
        if (filled >= 8) out.bytes[out.length++] = (uint8_t)(bits >> (filled -= 8));
    }
    return out;
}

/* The inputs and outputs of the model; its JSON is null if the server refuses. */
static manifest read_manifest(asker *a) {
    manifest m = {0};
    char path[128];
    snprintf(path, sizeof path, "/v1/models/%s", a->model);
    m.json = request_object(a, "GET", path, NULL, MOST_MANIFEST);
    if (m.json == NULL) return m;
    const char *packing = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m.json, "packing"));
    if (field(m.json, "version", 4, 4) != 4 || packing == NULL || strcmp(packing, "coefficients") != 0)
        fail("the model", "is for clients that encrypt slots; compile it without --slots");
    m.client = base64(m.json, "client");
    m.parameters = base64(m.json, "parameters");
    m.head = base64(m.json, "key_set");
    m.divisor = real(m.json, "divisor");
    m.factor = real(m.json, "factor");
    int exponent;
    if (frexp(m.divisor, &exponent) != 0.5) fail("divisor", "is no power of two");
    m.input = read_places(cJSON_GetObjectItemCaseSensitive(m.json, "input"));
    m.output = read_places(cJSON_GetObjectItemCaseSensitive(m.json, "output"));
    return m;
}

static void free_manifest(manifest *m) {
    free(m->client.bytes), free(m->parameters.bytes), free(m->head.bytes), free(m->input.start), free(m->output.start);
    cJSON_Delete(m->json);
}

/* The client of the folder's secret, or of a new one. A secret fits the parameters of one client. */
static kw_client *open_client(const asker *a, const manifest *m) {
    char *path = join(a->folder, "secret");
    kw_client *client = NULL;
    FILE *there = fopen(path, "rb");
    if (there != NULL) {
        fclose(there);
        buffer secret = read_file(path);
        int code = kw_client_from_secret(m->client.bytes, m->client.length, a->flags, secret.bytes, secret.length, NULL, NULL, &client);
        wipe(secret.bytes, secret.length);
        free(secret.bytes);
        if (code != KW_OK && a->keys[0] != 0) fail(path, kw_last_error());
    }
    if (client == NULL) {
        check(kw_client_generate(m->client.bytes, m->client.length, a->flags, NULL, NULL, &client));
        FILE *file = open_file(path, "wb");
        check(kw_client_secret(client, to_file, file));
        close_file(file, path);
    }
    if (kw_client_capacity(client) < (size_t)m->input.size || kw_client_capacity(client) < (size_t)m->output.size)
        fail("the manifest", "names more numbers than a ciphertext has");
    free(path);
    return client;
}

/* Keys during the upload: a piece of them, and its place. */
typedef struct {
    asker *asker;
    buffer piece;
    uint64_t place;
} upload;

/* Sends the piece from the byte that the server expects. Returns 0 if all of it has arrived. */
static int send_piece(upload *u) {
    uint64_t from = u->place, end = u->place + u->piece.length;
    for (int failures = 0; from < end; failures++) {
        if (failures > RETRIES) return 1;
        char path[128], offset[64];
        snprintf(path, sizeof path, "/v1/keys/%s", u->asker->keys);
        snprintf(offset, sizeof offset, "Upload-Offset: %" PRIu64, from);
        buffer rest = {u->piece.bytes + (from - u->place), end - from};
        answer out = {.most = MOST_JSON};
        int found = request_once(u->asker, "PATCH", path, &rest, offset, &out);
        free(out.bytes.bytes);
        if (found == 0) break;
        if (found == 1 && !is_refused(u->asker, "wrong_offset")) return 1;
        pause_ms(100L << failures);
        /* Part of a piece that was cut has arrived. */
        cJSON *state = request_json(u->asker, "GET", path, NULL);
        const cJSON *received = cJSON_GetObjectItemCaseSensitive(state, "received");
        int good = cJSON_IsNumber(received) && received->valuedouble >= (double)u->place && received->valuedouble <= (double)end;
        if (good) from = (uint64_t)received->valuedouble;
        cJSON_Delete(state);
        if (!good) return 1;
    }
    u->place = end;
    u->piece.length = 0;
    return 0;
}

static int send_keys(void *context, const uint8_t *bytes, size_t length) {
    upload *u = context;
    if (append(&u->piece, bytes, length) != 0) return 1;
    return u->piece.length < PIECE ? 0 : send_piece(u);
}

/* Makes the keys and sends them. Returns 0 if the server has them; otherwise the reason is noted. */
static int make_keys(asker *a, const manifest *m, const kw_client *client) {
    char text[HASH + 32], path[128];
    int length = snprintf(text, sizeof text, "{\"model\": \"%s\"}", a->model);
    cJSON *made = request_json(a, "POST", "/v1/keys", &(buffer){(uint8_t *)text, (size_t)length});
    if (made == NULL) return 1;
    copy_hex(cJSON_GetObjectItemCaseSensitive(made, "keys"), a->keys, IDENTIFIER);
    copy_hex(cJSON_GetObjectItemCaseSensitive(made, "configuration"), a->configuration, HASH);
    cJSON_Delete(made);
    if (a->keys[0] == 0) fail("/v1/keys", "gives no identifier");
    upload u = {.asker = a};
    int code = kw_client_keys(client, m->parameters.bytes, m->parameters.length, m->head.bytes, m->head.length, &a->limits,
                              NULL, NULL, send_keys, &u);
    if (code != KW_ERROR_SINK) check(code);
    int failed = code != KW_OK || (u.piece.length > 0 && send_piece(&u) != 0);
    free(u.piece.bytes);
    snprintf(path, sizeof path, "/v1/keys/%s", a->keys);
    /* The server checks the keys after the last byte. */
    for (int ready = 0; !failed && !ready; pause_ms(ready ? 0 : POLL_MS)) {
        cJSON *state = request_json(a, "GET", path, NULL);
        ready = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(state, "ready"));
        failed = state == NULL;
        cJSON_Delete(state);
    }
    if (failed) {
        a->keys[0] = 0;
        return 1;
    }
    store_session(a);
    return 0;
}

/* Writes a sample as the message to send: before each ciphertext its length, little-endian. */
static buffer encrypt(const manifest *m, kw_client *client, const double *values) {
    const places *in = &m->input;
    int64_t *numbers = allocate((size_t)in->ciphertexts * (size_t)in->size, sizeof *numbers);
    double one = ldexp(1, (int)kw_client_fraction_bits(client)) / m->divisor;
    for (int i = 0; i < in->count; i++)
        for (int k = 0; k < in->repeat; k++) numbers[in->start[i] + k * in->stride] = llround(values[i] * one);
    buffer message = {0};
    kw_compact compact = {{0, 0}};
    for (int i = 0; i < in->ciphertexts; i++) {
        buffer ciphertext = {0};
        check(kw_client_encrypt(client, numbers + (size_t)i * (size_t)in->size, (size_t)in->size, &compact, append, &ciphertext));
        uint8_t length[4];
        for (int byte = 0; byte < 4; byte++) length[byte] = (uint8_t)(ciphertext.length >> (8 * byte));
        if (append(&message, length, 4) != 0 || append(&message, ciphertext.bytes, ciphertext.length) != 0)
            fail("memory", "there is none left");
        free(ciphertext.bytes);
    }
    wipe((uint8_t *)numbers, (size_t)in->ciphertexts * (size_t)in->size * sizeof *numbers);
    free(numbers);
    return message;
}

static void print_scores(const manifest *m, kw_client *client, const buffer *bytes) {
    const places *out = &m->output;
    int64_t *numbers = allocate((size_t)out->ciphertexts * (size_t)out->size, sizeof *numbers);
    size_t place = 0;
    for (int i = 0; i < out->ciphertexts; i++) {
        if (bytes->length - place < 4) fail("the answer", "ends early");
        const uint8_t *at = bytes->bytes + place;
        size_t length = at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
        place += 4;
        if (bytes->length - place < length) fail("the answer", "ends early");
        check(kw_client_decrypt(client, at + 4, length, numbers + (size_t)i * (size_t)out->size, (size_t)out->size));
        place += length;
    }
    if (place != bytes->length) fail("the answer", "has bytes left over");
    double unit = ldexp(m->factor, -(int)kw_client_fraction_bits(client));
    const cJSON *label = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(m->json, "labels"), 0);
    for (int i = 0; i < out->count; i++, label = label != NULL ? label->next : NULL) {
        const char *name = cJSON_GetStringValue(label);
        if (name != NULL && !is_printable(name)) fail("a label of the model", "has control characters");
        printf("%.9f%s%s\n", (double)numbers[out->start[i]] * unit, name != NULL ? " " : "", name != NULL ? name : "");
    }
    free(numbers);
}

/* Asks for the scores of the message. Returns 0 with an answer; otherwise the reason is noted. */
static int evaluate(asker *a, const buffer *message, answer *result) {
    char path[256], job[IDENTIFIER + 1];
    snprintf(path, sizeof path, "/v1/keys/%s/jobs?model=%s", a->keys, a->model);
    cJSON *state = request_json(a, "POST", path, message);
    copy_hex(cJSON_GetObjectItemCaseSensitive(state, "job"), job, IDENTIFIER);
    snprintf(path, sizeof path, "/v1/jobs/%s", job);
    while (state != NULL) {
        const char *now = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(state, "state"));
        int waits = now != NULL && (strcmp(now, "waiting") == 0 || strcmp(now, "running") == 0);
        cJSON_Delete(state);
        if (!waits) break;
        pause_ms(POLL_MS);
        state = request_json(a, "GET", path, NULL);
        if (state == NULL) return 1;
    }
    if (a->refusal[0] != 0) return 1;
    snprintf(path, sizeof path, "/v1/jobs/%s/result", job);
    return request(a, "GET", path, NULL, result);
}

static double *read_sample(const char *path, int count) {
    double *values = allocate((size_t)count, sizeof *values);
    FILE *file = open_file(path, "r");
    double more;
    for (int i = 0; i < count; i++)
        if (fscanf(file, "%lf", &values[i]) != 1) fail(path, "has fewer numbers than the model takes");
    if (fscanf(file, "%lf", &more) == 1) fail(path, "has more numbers than the model takes");
    fclose(file);
    return values;
}

/* Refuses a sample outside of the model's range before making a key. */
static void check_range(const manifest *m, const double *values) {
    const cJSON *range = cJSON_GetObjectItemCaseSensitive(m->json, "input_range");
    const cJSON *low = cJSON_GetArrayItem(range, 0), *high = cJSON_GetArrayItem(range, 1);
    if (!cJSON_IsNumber(low) || !cJSON_IsNumber(high)) fail("input_range", "is missing in the manifest");
    if (!(low->valuedouble >= -m->divisor && high->valuedouble <= m->divisor)) fail("input_range", "is larger than the divisor");
    for (int i = 0; i < m->input.count; i++)
        if (!(values[i] >= low->valuedouble && values[i] <= high->valuedouble)) {
            fprintf(stderr, "number %d is %g; the model takes %g to %g\n", i, values[i], low->valuedouble, high->valuedouble);
            exit(1);
        }
}

/* Keeps what the first manifest says of inputs, and refuses another model with other inputs. A server that could change the
 * range while a sample waits would read from the next request whether the sample is in it. */
static void keep_inputs(asker *a, const manifest *m) {
    static const char *const names[] = {"packing", "client", "input", "input_range", "divisor"};
    cJSON *inputs = cJSON_CreateObject();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        cJSON_AddItemToObject(inputs, names[i], cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(m->json, names[i]), 1));
    if (a->inputs != NULL && !cJSON_Compare(a->inputs, inputs, 1))
        fail(a->model, "has replaced the model and takes other inputs; run this program again to use it");
    cJSON_Delete(a->inputs);
    a->inputs = inputs;
}

/* One attempt. Returns 0 if the scores were printed, or 1 if the server refused and the caller should try again after
 * handling the noted reason. */
static int attempt(asker *a, const char *sample) {
    if (a->model[0] == 0) choose_model(a);
    manifest m = read_manifest(a);
    if (m.json == NULL) return 1;
    keep_inputs(a, &m);
    double *values = read_sample(sample, m.input.count);
    check_range(&m, values);
    kw_client *client = open_client(a, &m);
    answer result = {.most = MOST_BYTES};
    int failed = a->keys[0] == 0 && make_keys(a, &m, client) != 0;
    if (!failed) {
        buffer message = encrypt(&m, client, values);
        failed = evaluate(a, &message, &result);
        free(message.bytes);
    }
    if (!failed) print_scores(&m, client, &result.bytes);
    kw_client_free(client);
    wipe((uint8_t *)values, (size_t)m.input.count * sizeof *values);
    free(values), free(result.bytes.bytes);
    free_manifest(&m);
    return failed;
}

/* A limit of the command line. */
static uint64_t limit(const char *option, const char *text) {
    char *end = NULL;
    uint64_t value = text == NULL ? 0 : strtoull(text, &end, 10);
    if (value == 0 || *end != 0) fail(option, "takes a number above 0");
    return value;
}

int main(int argc, char **argv) {
    const char *program = argv[0];
    asker a = {.limits = {KW_DEFAULT_KEY_BYTES, KW_DEFAULT_KEY_COUNT}};
    for (; argc > 1 && strncmp(argv[1], "--", 2) == 0; argc--, argv++) {
        if (strcmp(argv[1], "--insecure") == 0) {
            a.flags = KW_INSECURE;
            continue;
        }
        uint64_t *place = strcmp(argv[1], "--key-bytes") == 0   ? &a.limits.key_bytes
                          : strcmp(argv[1], "--key-count") == 0 ? &a.limits.key_count
                                                                : NULL;
        if (place == NULL || argc < 3) break;
        *place = limit(argv[1], argv[2]);
        argc--, argv++;
    }
    if (argc != 4) {
        fprintf(stderr, "usage: %s [--insecure] [--key-bytes N] [--key-count N] URL FOLDER SAMPLE\n", program);
        return 2;
    }
    /* Only the owner may read a secret. */
    umask(077);
    mkdir(argv[2], 0700);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0) fail("libcurl", "cannot be used");
    a.curl = curl_easy_init(), a.url = argv[1], a.folder = argv[2];
    if (a.curl == NULL) fail("libcurl", "cannot be used");
    load_session(&a);
    int failed = 1;
    for (int renewals = 0; failed && renewals <= RENEWALS; renewals++) {
        failed = attempt(&a, argv[3]);
        if (!failed) break;
        if (is_refused(&a, "unknown_keys") || is_refused(&a, "keys_incomplete")) a.keys[0] = 0;
        else if (is_refused(&a, "retired")) follow(&a);
        else if (is_refused(&a, "other_model")) a.model[0] = a.keys[0] = 0;
        else if (!is_refused(&a, "unknown_job")) break;
    }
    if (!failed) store_session(&a);
    cJSON_Delete(a.inputs);
    curl_easy_cleanup(a.curl);
    curl_global_cleanup();
    return failed;
}
