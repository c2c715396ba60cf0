"""What is measured, each folder one question; `python -m benchmarks.NAME` runs it."""
