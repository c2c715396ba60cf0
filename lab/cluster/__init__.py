"""A real Kubernetes on one machine, for tests and for trying numakin: etcd, API server with RBAC, controller-manager
and scheduler as processes that listen on loopback alone, and nodes on which only the kubelet is played.

Everything ends with the process that started it.
"""
