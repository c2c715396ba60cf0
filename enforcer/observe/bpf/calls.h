/*
 * inet_sendmsg(socket, message, size), inet_recvmsg(socket, message, size, flags) and their inet6_ twins, by return value: sizes
 * asked for are not sizes sent, and tcp_cleanup_rbuf reports a receive loop's bytes more than once.
 * Before Linux 6.5 sendfile went by inet_sendpage, which is not counted.
 */
#define SOCK_STREAM 1
#define SOCK_DGRAM 2

/* The head of struct socket, the same since Linux 5.3. */
struct socket_object {
    int state;
    short type;
    u64 flags;
    void *file;
    void *sk;
};

static __always_inline void account_returned(void *socket, long returned, int received) {
    struct socket_object object;
    if (returned <= 0 || bpf_probe_read_kernel(&object, sizeof(object), socket))
        return;
    if (object.type == SOCK_STREAM)
        account_socket(object.sk, TCP, returned, received);
    else if (object.type == SOCK_DGRAM)
        account_socket(object.sk, UDP, returned, received);
}
