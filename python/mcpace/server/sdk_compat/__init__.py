"""Support for programs written for the official SDK: its types, its private names, its in-memory transport."""
