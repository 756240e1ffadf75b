/* Runs known_answers of crates/capi-bare/examples/known.c: FILE_OF_PARAMETERS FRACTION_BITS, then length and checksum of
 * every object. Exits with the step that fails. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define OBJECTS 6

typedef struct {
    uint64_t length;
    uint64_t checksum;
} answer;

int known_answers(const uint8_t *parameters, size_t length, uint32_t fraction_bits, const answer *answers);

int main(int count, char **words) {
    uint8_t parameters[512];
    answer answers[OBJECTS];
    if (count != 3 + 2 * OBJECTS) return 100;
    FILE *file = fopen(words[1], "rb");
    if (!file) return 101;
    size_t length = fread(parameters, 1, sizeof parameters, file);
    fclose(file);
    for (int i = 0; i < OBJECTS; i++) {
        answers[i].length = strtoull(words[3 + 2 * i], 0, 10);
        answers[i].checksum = strtoull(words[4 + 2 * i], 0, 10);
    }
    return known_answers(parameters, length, (uint32_t)strtoul(words[2], 0, 10), answers);
}
