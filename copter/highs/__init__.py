"""The one place where HiGHS is called."""
