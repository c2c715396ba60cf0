"""What is known of the cluster: machines, members, promises; and the scores that follow from it."""
