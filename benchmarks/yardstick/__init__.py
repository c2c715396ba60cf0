"""What could have been reached: exact optima, best known solutions, proven bounds. `python -m benchmarks.yardstick`."""
