"""Ways to count traffic in the kernel. `chain` has their order and finds the first that works; a new one goes into its
row.
"""
