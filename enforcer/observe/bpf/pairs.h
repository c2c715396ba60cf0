/* Counting by pair of cgroups, and finding the cgroup of a task or of a socket. PAIRS: how many keys there may be. */
BPF_TABLE("percpu_hash", struct pair_key, struct pair_value, pairs, PAIRS);

static __always_inline void count_pair(struct pair_key *key, u64 bytes) {
    struct pair_value *value = pairs.lookup(key);
    if (!value) {
        struct pair_value zero = {};
        pairs.insert(key, &zero);
        value = pairs.lookup(key);
        if (!value) {
            miss(FULL_BYTES, bytes);
            return;
        }
    }
    value->bytes += bytes;
    value->messages += 1;
}

static __always_inline void *follow(void *object, u32 offset) {
    void *target = 0;
    bpf_probe_read_kernel(&target, sizeof(target), object + offset);
    return target;
}

static __always_inline u64 cgroup_id(void *cgroup) {
    u64 id = 0;
    void *node = cgroup ? follow(cgroup, OFFSET_cgroup_kn) : 0;
    if (node)
        bpf_probe_read_kernel(&id, sizeof(id), node + OFFSET_kernfs_node_id);
    return id;
}

static __always_inline u64 task_cgroup_id(void *task) {
    void *set = follow(task, OFFSET_task_struct_cgroups);
    return set ? cgroup_id(follow(set, OFFSET_css_set_dfl_cgrp)) : 0;
}
