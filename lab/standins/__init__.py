"""Peers that speak the real protocols, for tests, the demo and benchmarks: an NRI runtime, a CRI runtime, an API
server, a kube-scheduler, a kubelet's podresources, and the sysfs trees of known machines. They do what recordings and
runs of the real ones show, not more.
"""
