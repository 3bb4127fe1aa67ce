"""The functions that users call: each checks its input, makes a run and returns a result."""
