"""The cluster half: scores nodes for kube-scheduler by what each node's enforcer would decide, and promises it."""
