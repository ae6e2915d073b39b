"""Everything that can be wrong with a lecture, a module a rule: from its text or its record to findings."""
