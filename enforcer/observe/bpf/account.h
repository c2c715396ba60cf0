/* Counting into the maps, shared by all programs that count IP traffic. EDGES: how many keys there may be. */
BPF_TABLE("percpu_hash", struct edge_key, struct edge_value, edges, EDGES);
BPF_ARRAY(listening, u8, 65536);

static __always_inline void count(struct edge_key *key, u64 bytes, int received) {
    struct edge_value *value = edges.lookup(key);
    if (!value) {
        struct edge_value zero = {};
        edges.insert(key, &zero);
        value = edges.lookup(key);
        if (!value) {
            miss(FULL_BYTES, bytes);
            return;
        }
    }
    if (received) {
        value->rx_bytes += bytes;
        value->rx_messages += 1;
    } else {
        value->tx_bytes += bytes;
        value->tx_messages += 1;
    }
}

static __always_inline u8 port_state(u32 port) {
    u8 *known = listening.lookup(&port);
    return known ? *known : UNHEARD_OF;
}

static __always_inline void learn_listening(u32 port) {
    u8 *known = listening.lookup(&port);
    if (known && *known == UNHEARD_OF)
        *known = LEARNED;
}

/* 1 if local < remote as 16 bytes in network order. */
static __always_inline int address_below(const u32 *local, const u32 *remote) {
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (local[i] != remote[i])
            return __builtin_bswap32(local[i]) < __builtin_bswap32(remote[i]);
    return 0;
}

static __always_inline u64 local_end(u64 cgroup, const u32 *own) {
    if (cgroup != ROOT_CGROUP)
        return cgroup;
    if (!own[0] && !own[1] && own[2] == __builtin_bswap32(0xffff))
        return BY_ADDRESS | own[3];
    return BY_ADDRESS | (u64)own[3] << 32 | own[2];
}

/*
 * Which end is the server? The one with the smaller port: a client's port is ephemeral. Where both ports are on the same side of
 * the ephemeral floor (50051 is popular with servers, and some clients may use any port), the one that is listened on: user space
 * tells those of this node, a SYN those of others. For equal ports callers compare addresses. What matters is that the two ends
 * of one connection, asking each for itself, never give the same answer.
 */
static __always_inline int is_server(u32 local, u32 remote) {
    if ((local >= EPHEMERAL_FLOOR) == (remote >= EPHEMERAL_FLOOR)) {
        u8 here = port_state(local), there = port_state(remote);
        if (here != there)
            return here > there;
    }
    return local < remote;
}
