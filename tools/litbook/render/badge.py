"""A badge: a small picture with a label and a short text, as SVG that needs no font and no network."""

from __future__ import annotations

from litbook.render import markup

HEIGHT, PADDING = 20, 7  # pixels
GOOD, PART, BAD = "#1a7f37", "#8a5a00", "#b3261e"  # each at least 4.5:1 against the white text


def svg(label: str, text: str, color: str) -> str:
    """The badge as the text of an SVG file: `label` on grey, `text` on `color`."""
    left, right = _width(label), _width(text)
    whole = markup.text(f"{label}: {text}")
    size = f'width="{left + right}" height="{HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{whole}">',
        f"<title>{whole}</title>",
        f'<clipPath id="r"><rect {size} rx="3"/></clipPath>',
        '<g clip-path="url(#r)">',
        f'<rect width="{left}" height="{HEIGHT}" fill="#444"/>',
        f'<rect x="{left}" width="{right}" height="{HEIGHT}" fill="{color}"/>',
        "</g>",
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">',
        _word(label, 0, left),
        _word(text, left, right),
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _word(text: str, start: int, width: int) -> str:
    inner = width - 2 * PADDING  # textLength: the same width with every font
    return f'<text x="{start + PADDING}" y="14" textLength="{inner}">{markup.text(text)}</text>'


def _width(text: str) -> int:
    """Pixels of `text` in Verdana at 11 pixels, about, with room on both sides."""
    narrow = sum(c in " ,.:il|'" for c in text)
    return 2 * PADDING + 7 * (len(text) - narrow) + 4 * narrow
