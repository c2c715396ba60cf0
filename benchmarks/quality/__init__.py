"""How much of the best known locality placement reaches online. `python -m benchmarks.quality --help`."""
