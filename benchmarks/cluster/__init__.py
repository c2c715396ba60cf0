"""A simulated cluster: the real numakin-extender, driven over its real interfaces.

Real: the extender's process, its HTTP verbs, its report stream over gRPC, its watch of an API server; and in every node
the enforcer's own agent, outbox and mirror, so that what decides here is what decides on a node. Simulated: containers
(a record of cpusets), the kubelet (it runs a bound pod on command), kube-scheduler (its sampling and two of its in-tree
scores), and the API server (`lab.standins.apiserver`). All nodes run in one process beside the driver's, and share a
few gRPC channels.

The same seed gives the same machines, pods, order and, where each step waits for what the one before has caused,
the same placements. Times, CPU and memory are measured, and differ.

Start at `simulation`, which runs the `scenarios` on a cluster (`driver`): its `nodes`, the `control` plane, its `load`.
"""
