"""The pictures of README and of the pages, each one SVG for light and for dark pages."""
