"""Helpers that the tests of several folders share: servers, clients, installations, scenes."""
