"""Tables captured on hardware, compressed, each behind a line of text that says what it is; loaded on demand."""
