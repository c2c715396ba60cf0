"""What the enforcer's port serves: metrics, health, the node's traffic. `pages` has the paths, `port` the socket."""
