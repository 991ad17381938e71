"""HiGHS: its branch and bound, in a child process that may crash without harm."""
