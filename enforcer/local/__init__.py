"""What the processes and people send each other over RUN_DIR/hook.sock. Imported by `hook` and `observer`."""
