"""The node's hardware as the hook knows it: read at the start, its live figures, and what becomes of members when it
changes. Start at `node`.
"""
