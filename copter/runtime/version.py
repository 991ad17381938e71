"""The version of copter."""

VERSION = "0.2.0"
