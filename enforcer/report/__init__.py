"""The stream to the extender."""
