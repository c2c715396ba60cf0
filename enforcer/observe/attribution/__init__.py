"""From counted addresses, cgroups and namespaces to containers, pods and workloads. Pure, but for what reads procfs."""
