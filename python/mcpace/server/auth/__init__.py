"""Callers and their rights: bearer tokens and their verifiers, permissions and rate limits."""
