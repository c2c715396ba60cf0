"""CreateContainer as a container runtime sees it, measured with NRI's own Go library."""
