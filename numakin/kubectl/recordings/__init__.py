"""What `record` writes and `replay` reads: a cluster, its machines and pods, and the traffic on it for a while."""
