/*
 * Bytes and messages per (local cgroup, peer address, server port), TCP and UDP over IPv4 and IPv6, taken where packets enter
 * and leave sockets: cgroup_skb on the root of cgroup v2.
 *
 * A message is a packet with payload as the socket layer hands it over, before segmentation offload cuts it up: one per small
 * request, about one per 64 KiB of a bulk transfer. SYN, FIN and bare ACK are not messages. Retransmitted payload is counted
 * again, on both ends alike.
 *
 * Only UAPI is used: no kernel structure is read, so the same program runs from Linux 5.10 on.
 * Overhead (Linux 6.18, per-CPU map): 84-133 ns an event, four events a TCP round trip.
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

struct transport {
    u32 at;          /* offset of the TCP or UDP header */
    u8 protocol;
    u8 fragment;     /* a later fragment, which has no ports */
};

#define TCP 6
#define UDP 17
#define V6_EXTENSIONS_MAX 6
#define V4_FRAGMENT_OFFSET 0x1fff
#define V6_FRAGMENT_OFFSET 0xfff8
#define SYN 0x02
#define ACK 0x10

static __always_inline u16 big16(const u8 *p) {
    return p[0] << 8 | p[1];
}

/* Steps over hop-by-hop (0), routing (43), fragment (44), authentication (51) and destination (60) headers. */
static __always_inline void skip_extensions(struct __sk_buff *skb, struct transport *t) {
#pragma unroll
    for (int i = 0; i < V6_EXTENSIONS_MAX; i++) {
        u8 head[4];
        u8 kind = t->protocol;
        if (kind != 0 && kind != 43 && kind != 44 && kind != 51 && kind != 60)
            return;
        if (bpf_skb_load_bytes(skb, t->at, head, sizeof(head)))
            return;
        t->protocol = head[0];
        if (kind == 44) {
            t->fragment |= (big16(head + 2) & V6_FRAGMENT_OFFSET) != 0;
            t->at += 8;
        } else {
            t->at += kind == 51 ? (head[1] + 2) * 4 : (head[1] + 1) * 8;
        }
    }
}

static __always_inline void account(struct __sk_buff *skb, int received) {
    void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
    struct ipv4_header *v4 = data;
    struct edge_key key = {};
    u32 own[4] = {};
    struct transport t = {};

    if ((void *)(v4 + 1) > end)
        return;
    if (v4->version_ihl >> 4 == 4) {
        t.at = (v4->version_ihl & 15) * 4;
        t.protocol = v4->protocol;
        t.fragment = (__builtin_bswap16(v4->fragment) & V4_FRAGMENT_OFFSET) != 0;
        key.peer[2] = own[2] = __builtin_bswap32(0xffff);
        key.peer[3] = received ? v4->saddr : v4->daddr;
        own[3] = received ? v4->daddr : v4->saddr;
    } else {
        struct ipv6_header *v6 = data;
        if ((void *)(v6 + 1) > end)
            return;
        t.at = sizeof(*v6);
        t.protocol = v6->next;
        __builtin_memcpy(key.peer, received ? v6->saddr : v6->daddr, 16);
        __builtin_memcpy(own, received ? v6->daddr : v6->saddr, 16);
        skip_extensions(skb, &t);
    }

    u8 head[14]; /* ports; for TCP up to the flags */
    u32 payload_at = t.at + 8;
    if (t.fragment || (t.protocol != TCP && t.protocol != UDP)) {
        miss(OTHER_BYTES, skb->len > t.at ? skb->len - t.at : 0);
        return;
    }
    if (bpf_skb_load_bytes(skb, t.at, head, t.protocol == TCP ? 14 : 8)) {
        miss(OTHER_BYTES, skb->len > t.at ? skb->len - t.at : 0);
        return;
    }
    u32 from = big16(head), to = big16(head + 2);
    if (t.protocol == TCP) {
        payload_at = t.at + (head[12] >> 4) * 4;
        if ((head[13] & (SYN | ACK)) == SYN)
            learn_listening(to);
    }
    if (skb->len <= payload_at)
        return;

    u32 local = received ? to : from, remote = received ? from : to;
    key.server = is_server(local, remote, address_below(own, key.peer));
    key.port = key.server ? local : remote;
    key.protocol = t.protocol;
    key.cgroup = bpf_skb_cgroup_id(skb);
    count(&key, skb->len - payload_at, received);
}

int numakin_ingress(struct __sk_buff *skb) {
    account(skb, 1);
    return 1;
}

int numakin_egress(struct __sk_buff *skb) {
    account(skb, 0);
    return 1;
}
