"""The web page: its files, the JSON behind it, and the stream of what changes. Built from `web/` (make web)."""
