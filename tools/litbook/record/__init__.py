"""The record of a run: what it holds, its JSON, its files, and how two differ. It runs no lecture."""
