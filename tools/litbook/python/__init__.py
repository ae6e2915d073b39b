"""What any Python text says: nodes, scopes, imports, references. It knows no lecture and executes nothing."""
