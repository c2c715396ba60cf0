/* Raw tracepoints sock_send_length(sk, returned, flags) and sock_recv_length: every send and receive of any socket. Linux 6.3. */
static __always_inline void account_call(struct bpf_raw_tracepoint_args *ctx, int received) {
    void *sk = (void *)ctx->args[0];
    u16 protocol = 0;
    bpf_probe_read_kernel(&protocol, sizeof(protocol), sk + OFFSET_sock_sk_protocol);
    if (protocol == TCP || protocol == UDP)
        account_socket(sk, protocol, (int)ctx->args[1], received);
}

int numakin_send(struct bpf_raw_tracepoint_args *ctx) {
    account_call(ctx, 0);
    return 0;
}

int numakin_receive(struct bpf_raw_tracepoint_args *ctx) {
    if (!(ctx->args[2] & (MSG_PEEK | MSG_ERRQUEUE)))
        account_call(ctx, 1);
    return 0;
}
