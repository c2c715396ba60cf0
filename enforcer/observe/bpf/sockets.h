/*
 * Accounting by socket instead of by packet: what a send or receive call returned. A message is one call.
 *
 * The head of struct sock_common has been the same since Linux 3.13; what moves comes from BTF as OFFSET_struct_member.
 * The peer of an unconnected UDP socket is not known here: it is counted with the address 0.0.0.0.
 */
struct socket_head {
    u32 daddr, rcv_saddr, hash;
    u16 dport, num, family;
    u8 state, flags;
};

#define AF_INET 2
#define AF_INET6 10
#define TCP 6
#define UDP 17
#define TCP_LISTEN 10
#define MSG_PEEK 0x2
#define MSG_ERRQUEUE 0x2000
#ifndef OFFSET_sock_common_skc_v6_daddr
#define OFFSET_sock_common_skc_v6_daddr 56
#define OFFSET_sock_common_skc_v6_rcv_saddr 72
#endif

/*
 * Where containers have no cgroup v2 of their own (BY_NAMESPACE), what tells them apart is their pod's network namespace, and in the
 * host's (HOST_NAMESPACE, 1 if not known) the process. Elsewhere the two reads are saved.
 */
static __always_inline u32 namespace_of(void *sk) {
    u32 inode = 0;
#ifdef OFFSET_sock_common_skc_net
    if (BY_NAMESPACE) {
        void *net = 0;
        bpf_probe_read_kernel(&net, sizeof(net), sk + OFFSET_sock_common_skc_net);
        bpf_probe_read_kernel(&inode, sizeof(inode), net + OFFSET_net_ns + OFFSET_ns_common_inum);
    }
#endif
    return inode;
}

/*
 * An AF_INET6 socket is asked for its v6 addresses even if it talks IPv4, where they are ::ffff:a.b.c.d, which is what the key
 * wants: daddr can't tell the two apart, since a native v6 socket holds a hash there.
 */
static __always_inline void account_socket(void *sk, u8 protocol, long bytes, int received) {
    struct socket_head head;
    struct edge_key key = {};
    u32 own[4] = {};
    if (bytes <= 0 || bpf_probe_read_kernel(&head, sizeof(head), sk))
        return;
    if (head.family == AF_INET6) {
        bpf_probe_read_kernel(key.peer, 16, sk + OFFSET_sock_common_skc_v6_daddr);
    } else if (head.family == AF_INET) {
        key.peer[2] = own[2] = __builtin_bswap32(0xffff);
        key.peer[3] = head.daddr;
        own[3] = head.rcv_saddr;
    } else {
        return;
    }
    u32 local = head.num, remote = __builtin_bswap16(head.dport);
    u64 cgroup = bpf_get_current_cgroup_id();
    if (head.family == AF_INET6 && (cgroup == ROOT_CGROUP || local == remote))
        bpf_probe_read_kernel(own, 16, sk + OFFSET_sock_common_skc_v6_rcv_saddr);
    if (!remote)
        key.server = 1; /* unconnected, as the sockets of UDP servers are */
    else
        key.server = local == remote ? address_below(own, key.peer) : is_server(local, remote);
    key.port = key.server ? local : remote;
    key.cgroup = local_end(cgroup, own);
    key.namespace = namespace_of(sk);
    if (key.namespace == HOST_NAMESPACE && cgroup == ROOT_CGROUP)
        key.cgroup = BY_PROCESS | bpf_get_current_pid_tgid() >> 32;
    key.protocol = protocol;
    count(&key, bytes, received);
}

/* Raw tracepoint inet_sock_set_state: a listener makes itself known by listening. */
int numakin_state(struct bpf_raw_tracepoint_args *ctx) {
    struct socket_head head;
    if ((int)ctx->args[2] == TCP_LISTEN && !bpf_probe_read_kernel(&head, sizeof(head), (void *)ctx->args[0]))
        learn_listening(head.num);
    return 0;
}
