"""What the web page shows, as JSON-ready values: the whole cluster in short, and pods, groups and nodes in detail."""
