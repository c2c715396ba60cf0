"""`make release`: everything that is published of one version, in build/release, of one commit, made from what is on
this machine. Asks no registry and publishes nothing.

`agreement` compares the places where the version stands; `plugin` makes the one file of `kubectl numakin`, `krew` its
manifest; `packages` the wheel, the sdist and the chart; `images` takes out what `make images` built.
"""
