"""The objects: where they are kept, and how they are read, validated, patched and written."""
