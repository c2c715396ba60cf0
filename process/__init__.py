"""How a process of either program keeps its threads going. The standard library alone."""
