"""What a simulation shows: a live line, a table, Parquet files, plots and one HTML page."""
