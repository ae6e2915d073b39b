"""What is stored."""

import pickle

from litbook import note

from .models import Pair


def storage() -> None:
    """Storage."""
    first_steps()
    a_pair_is_two_numbers()


def first_steps() -> None:
    """A file has sections of its own."""
    numbers = [1, 2, 3]  # @inspect numbers, sum(numbers) as B
    assert sum(numbers) == 6, "added"


def a_pair_is_two_numbers() -> None:
    """A pair comes from another file."""
    note("Its class is a definition of the lecture.")
    pair = Pair(3, 4)  # @inspect pair.total()
    assert pair.total() == 7
    copy = pickle.loads(pickle.dumps(pair))
    assert copy.total() == pair.total(), "pickled by its name"
