"""What makes and checks the tree: set-up scripts, and the tables and pictures of docs/ that are made from the code."""
