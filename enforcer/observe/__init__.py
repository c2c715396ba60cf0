"""The kernel's view of who talks to whom: collectors, their fall-backs, and attribution to containers."""
