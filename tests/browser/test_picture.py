"""A figure as `vector` writes it and as Matplotlib does, side by side in a browser."""

from __future__ import annotations

import io

from tests.unit.test_vector import busy, written

from litbook.probe import svg


def test_the_picture_is_the_same(browser):
    import numpy as np
    from PIL import Image

    seen = []
    page = browser.new_page(viewport={"width": 700, "height": 500})
    try:
        for text in (written(busy()), svg.svg(busy())):
            page.set_content(f'<body style="margin:0;background:#fff">{text}</body>')
            seen.append(np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("L")).astype(int))
    finally:
        page.close()
    assert seen[0].min() < 50  # something was drawn
    apart = np.abs(seen[0] - seen[1])  # by a hundredth of a point, at edges
    assert apart.max() < 100
    assert (apart > 20).sum() < 100
