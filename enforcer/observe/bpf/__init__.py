"""BPF programs (C), how they are compiled and loaded, and the maps that they count in. `contract.h` is what both sides
share.
"""
