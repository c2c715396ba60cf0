"""How long decide() takes as machines and containers grow, and the round trip of a container through the hook."""
