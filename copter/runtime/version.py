"""The version of copter."""

VERSION = "0.3.0"
