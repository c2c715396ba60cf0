/*
 * Bytes and messages per (local cgroup, peer address, server port), TCP and UDP over IPv4 and IPv6, taken where packets enter
 * and leave sockets: cgroup_skb on the root of cgroup v2.
 *
 * A message is a packet with payload as the socket layer hands it over, before segmentation offload cuts it up: one per small
 * request, about one per 64 KiB of a bulk transfer. SYN, FIN and bare ACK are not messages. Retransmitted payload is counted
 * again, on both ends alike.
 *
 * Only UAPI is used: no kernel structure is read, so the same program runs from Linux 5.10 on.
 * Overhead (Linux 6.18): 65-95 ns an event beyond an empty program (115-160 without slots), four events a round trip.
 */
struct ipv4_header {
    u8 version_ihl, tos;
    u16 length, id, fragment;
    u8 ttl, protocol;
    u16 checksum;
    u32 saddr, daddr;
};

struct ipv6_header {
    u32 version_class_flow;
    u16 length;
    u8 next, hop_limit;
    u32 saddr[4], daddr[4];
};

/* What the transport's header says. */
struct segment {
    u32 from, to;     /* ports */
    u32 payload_at;   /* offset in the packet */
    int opens;        /* a SYN without ACK */
};

#define TCP 6
#define UDP 17
#define V4_WITHOUT_OPTIONS 0x45
#define V6_EXTENSIONS_MAX 6
#define FRAGMENT_OFFSET_V4 __builtin_bswap16(0x1fff)
#define FRAGMENT_OFFSET_V6 0xfff8
#define SYN 0x02
#define ACK 0x10
#define TCP_HEAD 14 /* up to the flags */
#define UDP_HEAD 8

static __always_inline u16 big16(const u8 *p) {
    return p[0] << 8 | p[1];
}

static __always_inline void read_segment(const u8 *head, u8 protocol, u32 at, struct segment *s) {
    s->from = big16(head);
    s->to = big16(head + 2);
    if (protocol == TCP) {
        s->payload_at = at + (head[12] >> 4) * 4;
        s->opens = (head[13] & (SYN | ACK)) == SYN;
    } else {
        s->payload_at = at + UDP_HEAD;
        s->opens = 0;
    }
}

/* A header somewhere in the packet, at the price of a call. */
static __always_inline int load_segment(struct __sk_buff *skb, u8 protocol, u32 at, struct segment *s) {
    u8 head[TCP_HEAD] = {};
    if (protocol == TCP ? bpf_skb_load_bytes(skb, at, head, TCP_HEAD) : bpf_skb_load_bytes(skb, at, head, UDP_HEAD))
        return 0;
    read_segment(head, protocol, at, s);
    return 1;
}

/*
 * Steps over hop-by-hop (0), routing (43), fragment (44), authentication (51) and destination (60) headers to what follows
 * them; to no protocol at all for a fragment that has no ports.
 */
static __always_inline u8 skip_extensions(struct __sk_buff *skb, u8 next, u32 *at) {
#pragma unroll
    for (int i = 0; i < V6_EXTENSIONS_MAX; i++) {
        u8 head[4];
        u8 kind = next;
        if (kind != 0 && kind != 43 && kind != 44 && kind != 51 && kind != 60)
            break;
        if (bpf_skb_load_bytes(skb, *at, head, sizeof(head)))
            break;
        if (kind == 44 && (big16(head + 2) & FRAGMENT_OFFSET_V6))
            break;
        next = head[0];
        *at += kind == 44 ? 8 : kind == 51 ? (head[1] + 2) * 4 : (head[1] + 1) * 8;
    }
    return next;
}

/* The local address, which is seldom needed. */
static __always_inline void own_address(struct __sk_buff *skb, int received, u32 *own) {
    void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
    struct ipv4_header *v4 = data;
    struct ipv6_header *v6 = data;
    if ((void *)(v4 + 1) > end)
        return;
    if (v4->version_ihl >> 4 == 4) {
        own[2] = __builtin_bswap32(0xffff);
        own[3] = received ? v4->daddr : v4->saddr;
    } else if ((void *)(v6 + 1) <= end) {
        __builtin_memcpy(own, received ? v6->daddr : v6->saddr, 16);
    }
}

/*
 * Counts one packet. Ports behind an IPv4 header without options, which is nearly all of them, are read where they lie. What is
 * left of the program's time goes into finding the socket's cgroup and the key in the map.
 */
static __always_inline void account(struct __sk_buff *skb, int received) {
    void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
    struct ipv4_header *v4 = data;
    struct ipv6_header *v6 = data;
    struct edge_key key = {};
    struct segment s;
    u32 at;

    if ((void *)(v4 + 1) > end)
        return;
    if (v4->version_ihl >> 4 == 4) {
        at = (v4->version_ihl & 15) * 4;
        key.protocol = v4->fragment & FRAGMENT_OFFSET_V4 ? 0 : v4->protocol;
        key.peer[2] = __builtin_bswap32(0xffff);
        key.peer[3] = received ? v4->saddr : v4->daddr;
    } else {
        if ((void *)(v6 + 1) > end)
            return;
        at = sizeof(*v6);
        key.protocol = skip_extensions(skb, v6->next, &at);
        __builtin_memcpy(key.peer, received ? v6->saddr : v6->daddr, 16);
    }
    if (key.protocol != TCP && key.protocol != UDP)
        return miss(OTHER_BYTES, skb->len > at ? skb->len - at : 0);
    if (v4->version_ihl == V4_WITHOUT_OPTIONS && data + sizeof(*v4) + TCP_HEAD <= end)
        read_segment(data + sizeof(*v4), key.protocol, sizeof(*v4), &s);
    else if (!load_segment(skb, key.protocol, at, &s))
        return miss(OTHER_BYTES, skb->len > at ? skb->len - at : 0);
    if (s.opens)
        learn_listening(s.to);
    if (skb->len <= s.payload_at)
        return;

    u32 local = received ? s.to : s.from, remote = received ? s.from : s.to;
    key.cgroup = bpf_skb_cgroup_id(skb);
    key.server = is_server(local, remote);
    if (key.cgroup == ROOT_CGROUP || local == remote) {
        u32 own[4] = {};
        own_address(skb, received, own);
        key.cgroup = local_end(key.cgroup, own);
        key.server = local == remote ? address_below(own, key.peer) : key.server;
    }
    key.port = key.server ? local : remote;
    count(&key, skb->len - s.payload_at, received);
}

int numakin_ingress(struct __sk_buff *skb) {
    account(skb, 1);
    return 1;
}

int numakin_egress(struct __sk_buff *skb) {
    account(skb, 0);
    return 1;
}
