/* Function exits by trampoline. How the programs are called in the end is bcc's affair, and has changed: see loader_child.py. */
KRETFUNC_PROBE(inet_sendmsg, void *socket, void *message, u64 size, int returned) {
    account_returned(socket, returned, 0);
    return 0;
}

KRETFUNC_PROBE(inet6_sendmsg, void *socket, void *message, u64 size, int returned) {
    account_returned(socket, returned, 0);
    return 0;
}

KRETFUNC_PROBE(inet_recvmsg, void *socket, void *message, u64 size, int flags, int returned) {
    if (!(flags & (MSG_PEEK | MSG_ERRQUEUE)))
        account_returned(socket, returned, 1);
    return 0;
}

KRETFUNC_PROBE(inet6_recvmsg, void *socket, void *message, u64 size, int flags, int returned) {
    if (!(flags & (MSG_PEEK | MSG_ERRQUEUE)))
        account_returned(socket, returned, 1);
    return 0;
}
