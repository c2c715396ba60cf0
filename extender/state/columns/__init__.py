"""The numbers of all nodes in arrays, what a pod finds of them, and what was worked out of them."""
