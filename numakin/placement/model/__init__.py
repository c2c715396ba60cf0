"""What placement works with: CPU and NUMA node sets, the machine, demands, the operator's rules, live usage.

Imports nothing of placement's other packages. Start with `cpuset` and `topology`.
"""
