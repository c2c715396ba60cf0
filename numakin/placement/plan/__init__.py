"""Where known workloads should live, settled ahead of their arrival, and which running members are worth a move.

Imports `model`, `state` and `decide`. A `problem` is made of a machine and its workloads, `partition` and `search`
solve it, `plan` answers for newcomers, `rebalance` for members that run.
"""
