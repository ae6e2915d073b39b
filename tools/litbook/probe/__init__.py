"""Code -> events: what is compiled into a lecture, and what notes what it sees."""
