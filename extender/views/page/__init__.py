"""What the web page shows, as JSON-ready values: the whole cluster in short, and pods, groups and nodes in detail."""

from typing import Any

Row = dict[str, Any]
"""One thing that the page shows, by the names of its JSON."""
