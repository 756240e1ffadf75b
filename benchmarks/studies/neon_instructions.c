// Instructions between marks, for QEMU's user-mode emulation: a mark is the system call getppid of the emulated
// program. Build with `cc -O2 -shared -fPIC -o libinstructions.so neon_instructions.c`, run with `qemu-aarch64 -plugin
// ./libinstructions.so`. What is used of QEMU's interface for plugins (version 1) is declared here: Debian has no
// package of its header.

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))
#define GETPPID_AARCH64 173

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_info;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };

typedef void (*tb_translated)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*system_called)(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3,
                              uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, tb_translated callback);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id, system_called callback);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, enum qemu_plugin_op op, void *counter,
                                              uint64_t add);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);

EXPORT int qemu_plugin_version = 1;

static uint64_t executed, marked;
static int open_mark;

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &executed, qemu_plugin_tb_n_insns(tb));
}

static void called(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3,
                   uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
    (void)id, (void)vcpu, (void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    if (number != GETPPID_AARCH64) {
        return;
    }
    if (open_mark) {
        printf("%" PRIu64 "\n", executed - marked);
        fflush(stdout);
    }
    open_mark = !open_mark;
    marked = executed;
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv) {
    (void)info, (void)argc, (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_vcpu_syscall_cb(id, called);
    return 0;
}
