"""Schedulers that the papers compare with, and that no other room needs."""
