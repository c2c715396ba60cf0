/*
 * Raw tracepoint sock_send_length(sk, returned, flags), for AF_UNIX: bytes and messages from the sender's cgroup to its peer's.
 * Linux 6.3. Sends alone are enough, since each end's sends are the other's receives.
 *
 * The peer of a stream is the process that connected or called listen: its cgroup, or its pid should it be gone. A datagram
 * socket has no such process; its peer is a socket, which knows the cgroup that it was made in. (That of an accepted stream is
 * the connecting one's, so it says nothing.) Datagrams sent without connect have no peer here: both are 0.
 */
#define AF_UNIX 1

static __always_inline void find_peer(void *sk, struct pair_key *key) {
    void *pid = follow(sk, OFFSET_sock_sk_peer_pid);
    if (!pid) {
        void *peer = follow(sk, OFFSET_unix_sock_peer);
        if (peer)
            key->to = cgroup_id(follow(peer, OFFSET_sock_sk_cgrp_data));
        return;
    }
    void *link = follow(pid, OFFSET_pid_tasks); /* first of tasks[PIDTYPE_PID] */
    if (link)
        key->to = task_cgroup_id(link - OFFSET_task_struct_pid_links);
    if (!key->to)
        bpf_probe_read_kernel(&key->pid, sizeof(key->pid), pid + OFFSET_pid_numbers);
}

int numakin_unix(struct bpf_raw_tracepoint_args *ctx) {
    void *sk = (void *)ctx->args[0];
    int sent = (int)ctx->args[1];
    struct pair_key key = {};
    u16 family = 0;
    bpf_probe_read_kernel(&family, sizeof(family), sk + OFFSET_sock_common_skc_family);
    if (family != AF_UNIX || sent <= 0)
        return 0;
    key.from = bpf_get_current_cgroup_id();
    find_peer(sk, &key);
    if (key.to != key.from)
        count_pair(&key, sent);
    return 0;
}
