"""What users hold: explanations, and what is derived from them."""
