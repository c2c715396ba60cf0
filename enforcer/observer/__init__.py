"""The process that does all that may be slow: traffic, plans, streams to the extender, metrics. Never imports `hook`.

Start with `process`, then `traffic_loop`: windows of traffic in, kin weights, plans and moves out.
"""
