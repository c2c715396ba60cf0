"""What plays the rest of the world: stand-ins of machines, runtimes and API servers, a real cluster on loopback, and
the demo.
"""
