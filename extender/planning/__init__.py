"""Where a group's workloads should live in the cluster: `numakin.placement.plan` over the NUMA nodes of several
machines.
"""
