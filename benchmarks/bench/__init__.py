"""`make bench`: each figure that has a target, in one table with the machine it was taken on."""
