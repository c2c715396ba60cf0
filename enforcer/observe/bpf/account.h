/*
 * Counting into the maps, shared by all programs that count IP traffic. EDGES: how many keys there may be. SLOTS: SLOTS_OF_CPU for
 * each CPU.
 *
 * Most events are of few flows, and finding a flow in the hash is most of what counting takes. So each CPU has slots of its own,
 * where a flow is found by its key in one step. A flow that is in the hash already takes its slot if that is empty, and is counted
 * there on this CPU until user space empties the slot; one whose slot is another's is counted in the hash. Nothing moves from one
 * to the other, so that their sum is right at any moment.
 */
BPF_TABLE("percpu_hash", struct edge_key, struct edge_value, edges, EDGES);
BPF_TABLE("array", u32, struct edge_slot, slots, SLOTS);
BPF_ARRAY(listening, u8, 65536);

#define GOLDEN 0x9e3779b1 /* 2^32 over the golden ratio: Fibonacci hashing */
#define ORDERED() asm volatile("" ::: "memory")

static __always_inline u32 slot_of(const struct edge_key *key) {
    u32 mixed = (u32)key->cgroup * 31 ^ key->peer[2] ^ key->peer[3] ^ key->port;
    return bpf_get_smp_processor_id() * SLOTS_OF_CPU + (mixed * GOLDEN >> 32 - SLOT_BITS);
}

static __always_inline int same(const struct edge_key *one, const struct edge_key *other) {
    const u64 *a = (const u64 *)one, *b = (const u64 *)other;
    return a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && a[3] == b[3];
}

/*
 * 1 if the empty slot is the key's now. An interrupt on this CPU may count a packet at any point of this: it finds `taking`, or has
 * taken the slot before the second look. The cgroup comes last, since a slot without one is empty to the reader.
 */
static __always_inline int take(struct edge_slot *slot, const struct edge_key *key) {
    struct edge_value zero = {};
    if (slot->taking)
        return 0;
    slot->taking = 1;
    ORDERED();
    int empty = !slot->key.cgroup;
    if (empty) {
        const u64 *from = (const u64 *)key;
        u64 *to = (u64 *)&slot->key;
        slot->value = zero;
        to[1] = from[1];
        to[2] = from[2];
        to[3] = from[3];
        ORDERED();
        to[0] = from[0];
    }
    ORDERED();
    slot->taking = 0;
    return empty;
}

static __always_inline struct edge_value *find_value(struct edge_key *key) {
    u32 at = slot_of(key);
    struct edge_slot *slot = slots.lookup(&at);
    if (slot && same(&slot->key, key))
        return &slot->value;
    struct edge_value *value = edges.lookup(key);
    if (value)
        return slot && key->cgroup && !slot->key.cgroup && take(slot, key) ? &slot->value : value;
    struct edge_value zero = {};
    edges.insert(key, &zero);
    return edges.lookup(key);
}

static __always_inline void count(struct edge_key *key, u64 bytes, int received) {
    struct edge_value *value = find_value(key);
    if (!value) {
        miss(FULL_BYTES, bytes);
        return;
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
