"""The process that answers the container runtime. Standard library and protobuf only; never imports `observer`.

Start with `process` (the loop), `wiring`, then `agent` (the owner of the node's occupancy). `facts` is what is known of
pods, `ownership` whose work a cpuset is.
"""
