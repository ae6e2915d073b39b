"""What is computed."""

import parts.models
from parts.models import Pair as Two


def compute() -> None:
    """Compute."""
    first_steps()


def first_steps() -> None:
    """Another file may have a section of the same name."""
    print(parts.models.twice(Two(1, 2)))
    assert parts.models.twice(Two(1, 2)) == 6
