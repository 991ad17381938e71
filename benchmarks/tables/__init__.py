"""One command a table of the papers: paper and measured, side by side."""
