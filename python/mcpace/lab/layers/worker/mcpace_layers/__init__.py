"""What runs beside a user's server to measure its layers. Each SDK is behind a probe in a file of its own."""
