"""Block programs: requests with private rows under many coupling rows, solved by their structure."""

from copter.runtime.processor import with_levels

__path__ = with_levels(__name__, __path__)
