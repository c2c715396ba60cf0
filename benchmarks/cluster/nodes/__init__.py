"""The simulated nodes: a real agent, mirror and report stream each, thousands of them in one process."""
