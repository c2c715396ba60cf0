"""A real kube-scheduler with many nodes: pods bound per second and groups kept whole, by extender and by sampling.

Real: etcd, API server, kube-scheduler (`lab/cluster/`), numakin-extender with its ServiceAccount's rights. Simulated:
the nodes' enforcers (`benchmarks.cluster.nodes`), and no kubelet starts anything.
"""
