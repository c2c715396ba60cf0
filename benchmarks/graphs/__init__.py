"""Call graphs to place: known systems, written down from their public sources, and generated shapes.

The services, and who calls whom, are facts of each system (its manifests and code). Calls are counted per 100 user
requests of the load mix that the system's own load generator sends, a call being a request and its answer. Where a
source states no count, and for sizes in bytes everywhere, the number is a plausible one: small structured messages
(0.3-1 KiB), larger ones for pages, lists and media.
"""
