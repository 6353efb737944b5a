"""Load from several processes or machines: one driver, and a worker at each place."""
