"""Sections on several ranks: their launch, their groups, what a launcher tells them."""
