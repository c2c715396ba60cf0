"""The cluster's half: scores nodes for kube-scheduler by what each node's enforcer would decide, and nominates it.

`main` wires it, `cluster` is the one mutable object. Arrows run down: `scheduler`, `reports` and `kube` speak to the
world; `views` are for people; `scoring` weighs nodes; `planning` plans groups; `traffic` knows who talks to whom;
`state` has the values.
"""
