"""Churn of pods under faults: processes killed, stopped and starved, the network and the API server failing, disks full.

`python -m tests.soak` (make soak) runs it for as long as is asked; `test_soak.py` runs a short form. After each round
the invariants are read from the runtime's side: for the embedded runtime what it would have set, for containerd the
kernel's files. Start reading at `rounds.py`.
"""
