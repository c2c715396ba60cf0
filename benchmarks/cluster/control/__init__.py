"""The control plane around the nodes: API server, controllers, kube-scheduler, and the extender as a process."""
