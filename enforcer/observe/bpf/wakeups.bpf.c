/*
 * Raw tracepoint sched_waking(task): which cgroup wakes which. Futexes on shared memory and pipes show here and nowhere else.
 *
 * A lower bound, as a peer that is still running needs no wake-up: of a pair that shares one CPU all may be in one direction. And
 * not only theirs: a packet's delivery wakes its receiver, often in the context of its sender.
 * Overhead (Linux 6.18): 214-350 ns an event.
 */
int numakin_waking(struct bpf_raw_tracepoint_args *ctx) {
    struct pair_key key = {};
    key.from = bpf_get_current_cgroup_id();
    if (key.from == ROOT_CGROUP)
        return 0;
    key.to = task_cgroup_id((void *)ctx->args[0]);
    if (key.to && key.to != key.from && key.to != ROOT_CGROUP)
        count_pair(&key, 0);
    return 0;
}
