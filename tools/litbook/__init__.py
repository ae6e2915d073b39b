"""The author's words. A lecture imports from here and from nowhere else in litbook."""

from litbook.probe.author import *  # noqa: F403  (what its `__all__` names)
from litbook.probe.author import __all__ as __all__
