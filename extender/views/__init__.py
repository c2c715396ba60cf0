"""The state as people, tools and Prometheus read it. Nothing below imports it."""
