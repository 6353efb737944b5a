"""Configurations of hosts: where they name servers, and how the flight recorder is put in front of these servers.

This file imports nothing, because a host waits for the program that reads it.
"""

RING_BYTES = 200_000_000
"""Bytes of all flight recordings of one server."""
