/* Function exits by trampoline. The context is the array of arguments, then what was returned. bcc finds the function by name. */
int kretfunc__inet_sendmsg(u64 *ctx) {
    account_returned((void *)ctx[0], (int)ctx[3], 0);
    return 0;
}

int kretfunc__inet6_sendmsg(u64 *ctx) {
    account_returned((void *)ctx[0], (int)ctx[3], 0);
    return 0;
}

int kretfunc__inet_recvmsg(u64 *ctx) {
    if (!(ctx[3] & (MSG_PEEK | MSG_ERRQUEUE)))
        account_returned((void *)ctx[0], (int)ctx[4], 1);
    return 0;
}

int kretfunc__inet6_recvmsg(u64 *ctx) {
    if (!(ctx[3] & (MSG_PEEK | MSG_ERRQUEUE)))
        account_returned((void *)ctx[0], (int)ctx[4], 1);
    return 0;
}
