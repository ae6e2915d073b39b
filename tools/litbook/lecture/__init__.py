"""What a lecture's text says: directives, sections, claims, and what these depend on. It executes nothing."""
