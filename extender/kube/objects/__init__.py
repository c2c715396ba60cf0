"""The objects that are kept at the API server: AffinityGroup (also what was learned) and NodeResourceTopology."""
