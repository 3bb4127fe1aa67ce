"""Bytes on disk: arrays in one file, locks, text embedded in a page."""
