"""Which CPUs of its home a container gets: exclusive ones, or those of a cache domain.

`exclusive` picks from masks alone; `cache_domain` weighs domains by the room that a request finds.
"""
