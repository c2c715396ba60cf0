"""What the processes and people say to each other over RUN_DIR/hook.sock. Imported by `hook` and `observer`."""
