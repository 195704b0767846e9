"""Numbers from data."""
