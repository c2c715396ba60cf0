/* Counting what no key can stand for: `slot` counts bytes, the one after it messages. */
BPF_PERCPU_ARRAY(missed, u64, MISSED_SLOTS);

static __always_inline void miss(u32 slot, u64 bytes) {
    u64 *count = missed.lookup(&slot);
    if (count)
        *count += bytes;
    slot += 1;
    count = missed.lookup(&slot);
    if (count)
        *count += 1;
}
