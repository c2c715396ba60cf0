"""`numakin-enforcer`: the commands that people start. Imports everything below it; nothing imports it."""
