"""What a record folds, cuts and keeps: every bound on what a run leaves, in one place.

The recorder and the snapshots keep to these, and pages say from them what was only counted. This module holds
numbers alone.
"""

from __future__ import annotations

# ---------------------------------------------------------------------------- what happened

FIRST, LAST = 3, 2  # iterations of a loop that are kept, from its start and its end (the probes know the 2)
# Calls of one function from one line that are kept, in one frame and one iteration; also of a section.
CALLS = 5
STEPS = 5_000  # steps kept of one call of a section, then only counted
GLIMPSES = 64  # calls of one function whose arguments are looked at; of later ones what is immediate is kept
SPARK = 48  # points kept of a watched number
OUTPUT = 20_000  # characters of printed output kept of a section
WORDINGS = 8  # texts for readers that one word is given, each once
MESSAGE = 2000  # characters of a message, a caption, an exception's text
TRACE = 20  # lines of a traceback: the first half and the last
LONGEST_LINE = 300  # characters kept of a line of another file than the lecture
NAMES, BRIEF = 6, 120  # names of a failing claim that are listed, and the characters of each value

# ---------------------------------------------------------------------------- one snapshot

NODES = 200  # snapshots within one snapshot
TENSOR_NODES = 8  # as many of them does a tensor count for, besides itself
TEXT = 4096  # bytes of JSON text within one snapshot, type names included
DEPTH = 4  # containers within containers
SECONDS = 0.2  # for all the foreign code of one snapshot
SHOWING = 2.0  # seconds for the form in which a value shows itself: a first chart loads its library's fonts
SHOWN = 2**18  # bytes of that form
GLIMPSED_NODES, GLIMPSED_TEXT = 24, 512  # as `NODES` and `TEXT`, of a glimpse at an argument
LOCAL_NODES = 8  # and of one at a local name, of which there are many
ONE_TEXT = 1000  # characters of a single text
TYPE_NAME = 120  # characters
ITEMS = 20  # of one container
SORTED_SET = 10_000  # sets up to this size are shown in order

# ---------------------------------------------------------------------------- one tensor

WHOLE = 64  # a tensor with at most so many elements keeps all of its values
CORNER = 96  # values of a larger one
ROWS, COLUMNS, LEADING = 6, 8, 2  # shape of that corner
GLIMPSED = 8  # as many elements at most does a glimpse read: what stands on one line
PATTERNS = 8  # elements of which the bits are kept, where a lecture asks for them
MEMORY = 32  # a storage with at most so many elements is kept whole
VALUES = 192  # tensor values within one snapshot
NESTED_READ = 2**26  # elements that statistics of tensors inside containers may read, all together
BLOCK = 2**21  # elements read at a time for statistics: fits a cache, at most 48 MiB of scratch

# ---------------------------------------------------------------------------- one picture to play with

POINTS = 2000  # of its grid
GRID = 60_000  # bytes of its JSON
SAMPLED = 256  # points of a picture whose places are more than those; its script is held to them
SCRIPT = 10_000  # bytes of that script
REPEATED = 24  # points that are computed a second time, in another order: what differs is refused

# ---------------------------------------------------------------------------- one file

IMAGE, LARGE_IMAGE = 5_000_000, 1_000_000  # bytes that a picture may have, and from which on a run says so

FILE = 2**28  # bytes of a record or recording that is read; one of 100,000 claims has a quarter of that
