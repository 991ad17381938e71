"""Block programs: requests with private rows under many coupling rows, solved by their structure."""
