"""kube-scheduler's side: the extender/v1 wire and its routes."""
