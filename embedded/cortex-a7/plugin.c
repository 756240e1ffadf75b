/* A plugin of QEMU's user mode that counts instructions: `-plugin plugin.so,count=PATH`.
 *
 * At every call of getppid the count so far is written to the file. What is declared here is what the plugin needs of
 * qemu-plugin.h, which distributions do not ship with the emulator; it is the same in QEMU 4.2 to 7.2.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
typedef struct qemu_info_t qemu_info_t;

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, void (*callback)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, void (*callback)(unsigned int, void *), int registers, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id, void (*callback)(qemu_plugin_id_t, unsigned int, int64_t, uint64_t, uint64_t,
                                                                              uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t));

int qemu_plugin_version = 1;

enum { GETPPID = 64, READS_NO_REGISTERS = 0 }; /* the number on 32-bit ARM */

static uint64_t instructions;
static char path[4096];

static void executed(unsigned int processor, void *count) {
    (void)processor;
    instructions += (uintptr_t)count;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_cb(block, executed, READS_NO_REGISTERS, (void *)qemu_plugin_tb_n_insns(block));
}

static void called(qemu_plugin_id_t id, unsigned int processor, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
                   uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
    (void)id, (void)processor, (void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    if (number != GETPPID) return;
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        return;
    }
    fprintf(file, "%" PRIu64 "\n", instructions);
    fclose(file);
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
    (void)info;
    if (argc != 1 || strncmp(argv[0], "count=", 6) || strlen(argv[0]) - 6 >= sizeof path) {
        fprintf(stderr, "the plugin takes one argument, count=PATH\n");
        return 1;
    }
    strcpy(path, argv[0] + 6);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_vcpu_syscall_cb(id, called);
    return 0;
}
