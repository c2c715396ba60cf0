/* Function entries and returns by kprobe, without BTF: the entry keeps the socket for the return. */
#include <uapi/linux/ptrace.h>

#define CALLS_IN_FLIGHT 16384

BPF_TABLE("lru_hash", u64, u64, calls, CALLS_IN_FLIGHT);

static __always_inline void enter(u64 socket) {
    u64 thread = bpf_get_current_pid_tgid();
    calls.update(&thread, &socket);
}

static __always_inline void leave(long returned, int received) {
    u64 thread = bpf_get_current_pid_tgid();
    u64 *socket = calls.lookup(&thread);
    if (!socket)
        return;
    account_returned((void *)*socket, returned, received);
    calls.delete(&thread);
}

int numakin_enter_s(struct pt_regs *ctx) {
    enter(PT_REGS_PARM1(ctx));
    return 0;
}

int numakin_enter_r(struct pt_regs *ctx) {
    if (!(PT_REGS_PARM4(ctx) & (MSG_PEEK | MSG_ERRQUEUE)))
        enter(PT_REGS_PARM1(ctx));
    return 0;
}

int numakin_leave_s(struct pt_regs *ctx) {
    leave((int)PT_REGS_RC(ctx), 0);
    return 0;
}

int numakin_leave_r(struct pt_regs *ctx) {
    leave((int)PT_REGS_RC(ctx), 1);
    return 0;
}
