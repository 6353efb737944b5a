"""Recordings as tables in Parquet files, and questions to these tables."""
