"""Models: no sections, but definitions."""


class Pair:
    """Two numbers."""

    def __init__(self, first: int, second: int) -> None:
        self.first, self.second = first, second

    def total(self) -> int:
        both = self.first + self.second  # @inspect both
        return both


def twice(pair: Pair) -> int:
    """Double the total."""
    return 2 * pair.total()
