/* Registers as a kprobe sees them. */
#ifndef NUMAKIN_PTRACE_H
#define NUMAKIN_PTRACE_H
#if defined(__aarch64__)
struct user_pt_regs {
    unsigned long long regs[31], sp, pc, pstate;
};
struct pt_regs {
    unsigned long long regs[31], sp, pc, pstate;
};
#else
struct pt_regs {
    unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#endif
#endif
