"""The cluster's traffic graph: what all enforcers report, joined to pods, fading, grouped, and remembered."""
