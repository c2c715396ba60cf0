"""How long the extender takes to answer kube-scheduler."""
