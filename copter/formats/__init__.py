"""Files of linear programs: MPS and LP, read and written."""
