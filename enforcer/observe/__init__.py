"""The kernel's view of who talks to whom. `bpf`: programs and their maps; `collectors`: ways to count, above it;
`attribution`: from counted addresses and cgroups to pods.
"""
