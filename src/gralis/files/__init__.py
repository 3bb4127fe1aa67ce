"""Explanations and pictures as files."""
