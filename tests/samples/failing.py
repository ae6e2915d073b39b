"""Sample: what goes wrong, <b>as text</b>."""

from litbook import note


def main():
    claims()
    errors()
    words()


def helper(depth):
    if depth:
        return helper(depth - 1)
    raise ValueError("too deep\nsecond line")


def claims():
    """Claims that <i>fail</i>."""
    x = 0.1 + 0.2  # @inspect x, x.nope
    assert x == 0.3, "<script>alert(1)</script>"
    assert x == 0.3 or not x, f"computed {1 + 1}"
    for i in range(5):
        assert i < 3, f"at {i}"
    assert "red" in "\x1b[31mred", "control characters \x1b[0m"


def errors():
    """An exception"""
    helper(2)
    assert False, "never reached"


def words():
    """An author's word"""
    note(3)
