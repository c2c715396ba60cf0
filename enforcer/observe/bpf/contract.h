/*
 * What the kernel half and the user half agree on. contract.py mirrors this file; a test compares the two.
 *
 * An address is always 16 bytes: IPv4 is written as ::ffff:a.b.c.d, so a v4 peer of a v6 socket is the same peer.
 * `port` is the server's port, whichever end that is; the client's ephemeral port is left out, or every connection would be
 * a key of its own. There is no hidden padding: the kernel hashes every byte of a key.
 */
struct edge_key {
    u64 cgroup;    /* local end: cgroup v2 id of the socket's container, or BY_ADDRESS or BY_PROCESS */
    u32 peer[4];   /* remote end, network byte order */
    u16 port;      /* the server's port, host byte order */
    u8 server;     /* 1: the local end is the server */
    u8 protocol;   /* 6 TCP, 17 UDP */
    u32 namespace; /* local end: inode of its network namespace; 0 where cgroups tell the containers apart */
};

/* Payload, without headers, since the program was loaded. */
struct edge_value {
    u64 tx_bytes, tx_messages, rx_bytes, rx_messages;
};

#define SLOT_BITS 7
#define SLOTS_OF_CPU (1 << SLOT_BITS)

/* A flow as one CPU counted it. Empty where key.cgroup is 0, whatever the value says. */
struct edge_slot {
    struct edge_key key;
    struct edge_value value;
    u64 taking;    /* 1 while the key is written */
};

/* One cgroup doing something to another: bytes sent over AF_UNIX, or wake-ups. */
struct pair_key {
    u64 from, to;  /* cgroup v2 ids; `to` is 0 if only the process is known */
    u32 pid;       /* in the host's pid namespace, 0 if `to` is known */
    u32 unused;
};

struct pair_value {
    u64 bytes, messages;
};

/* Slots of the array `missed`: what could not be given to any key. */
enum missed_slot {
    FULL_BYTES,        /* the map had no room */
    FULL_MESSAGES,
    OTHER_BYTES,       /* neither TCP nor UDP, a fragment without ports, a header out of reach */
    OTHER_MESSAGES,
    MISSED_SLOTS,
};

#define ROOT_CGROUP 1 /* kernel threads, and every process of a node whose runtime uses cgroup v1 */

/*
 * In `cgroup`, when that would be the root: the local end is known by its own address alone. The low bits are the IPv4 address,
 * or all but the first of the second half of the IPv6 one, as they lie in memory.
 */
#define BY_ADDRESS (1ULL << 63)

/*
 * In `cgroup`, when that would be the root and the socket is in the host's network namespace, whose address tells nothing: the low
 * bits are the process id.
 */
#define BY_PROCESS (1ULL << 62)

#define EPHEMERAL_FLOOR 32768  /* first of Linux's default net.ipv4.ip_local_port_range */

/* What `listening` holds by port. */
enum port_state {
    UNHEARD_OF,
    LEARNED,      /* by a SYN that was sent to it, here or elsewhere */
    LISTENED_ON,  /* by somebody on this node, says user space */
};
