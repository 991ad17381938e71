"""Output of a simulation: a live line, a table, Parquet files, plots and one HTML page."""
