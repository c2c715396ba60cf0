"""Whether any pod is worse off for numakin being there: throughput and p99 with it over without it, pod by pod.

`situations` says which pods run together, `worker` is the program in each of their containers, `node` runs them on a
real containerd on this machine's CPUs as two NUMA nodes, `measured` makes pairs of such runs and their ratios. `played`
does the same for 500 pods by decide() and the CPU that each would get (`sharing`), `relieved` with the hook's relief.
"""
