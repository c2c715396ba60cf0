"""Groups of unlike sizes on nodes of unlike sizes: how whole they become, beside what an operator would write by hand
and the best that is known.

Real: the extender's cluster, scores, reservations and nominations; each node's `decide()`. Simulated: kube-scheduler
(`lab.standins.scheduler`), its bindings, which are seen some pods later, and the containers. Same seed, same places.

Start at `play`, which places the groups of `drawn` in an order of `orders`; `by_hand` has the rules, `best` the
yardstick.
"""
