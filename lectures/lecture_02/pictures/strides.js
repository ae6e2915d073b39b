// A strip of memory, and the grid that a shape, strides and a beginning read from it.
window.litbookPicture = (() => {
  const CELLS = 12, SIDE = 29, cells = (count) => (count === 1 ? "1 cell" : `${count} cells`);
  const places = ({ rows, columns, row_stride: down, column_stride: right, offset: start }) =>
    Array.from({ length: rows }, (_, i) => Array.from({ length: columns }, (_, j) => start + i * down + j * right));

  return {
    size: [360, 264],
    values(place) {
      const elements = places(place), { rows, columns, row_stride: down, column_stride: right } = place;
      if (elements.flat().some((at) => at >= CELLS)) return "outside the storage";
      // row by row without a jump: an axis of one element takes no step
      const contiguous = (columns === 1 || right === 1) && (rows === 1 || down === columns);
      return { elements, contiguous, kept: new Set(elements.flat()).size };
    },

    draw(stage, { place, values, make }) {
      const elements = places(place), flat = elements.flat(), outside = flat.filter((at) => at >= CELLS).length;
      const x = (at) => 2 + at * SIDE, cell = (at, left, top, read, out) => [
        make("rect", { x: left, y: top, width: SIDE, height: 30, style: `fill:${out ? "color-mix(in srgb, var(--lb-fail) 30%, transparent)" : read ? "color-mix(in srgb, var(--lb-accent) 30%, transparent)" : "none"};stroke:${out ? "var(--lb-fail)" : "currentColor"};stroke-width:${read ? 1.5 : 0.7}` }),
        make("text", { x: left + SIDE / 2, y: top + 20, "text-anchor": "middle", style: `fill:currentColor;font-weight:${read ? 700 : 400}` }, out ? "?" : String(at)),
      ];
      const arc = (from, to, colour) => from === to ? [] : [
        make("path", { d: `M${x(from) + SIDE / 2} 58C${x(from) + SIDE / 2} ${58 - 9 * Math.min(to - from, 5)} ${x(to) + SIDE / 2} ${58 - 9 * Math.min(to - from, 5)} ${x(to) + SIDE / 2} 58`, style: `fill:none;stroke:${colour};stroke-width:2` }),
        make("path", { d: `M${x(to) + SIDE / 2 - 4} 50l4 8l4 -8z`, style: `fill:${colour}` }),
      ];
      const blue = "var(--lb-accent)", gold = "color-mix(in srgb, var(--lb-hot) 62%, currentColor)", { rows, columns, row_stride: down, column_stride: right, offset: start } = place;
      const label = (left, top, text, colour = "currentColor", weight) => make("text", { x: left, y: top, style: `fill:${colour};font-weight:${weight || 400}` }, text);
      const strip = Array.from({ length: CELLS }, (_, at) => cell(at, x(at), 60, flat.includes(at)));
      const grid = elements.map((row, i) => row.map((at, j) => cell(at, 2 + j * SIDE, 140 + i * 30, true, at >= CELLS)));
      stage.replaceChildren(make("svg", { viewBox: "0 0 360 264", "aria-hidden": "true", style: "font-size:14px" },
        label(2, 106, "memory"), rows > 1 && label(2, 14, `row stride: ${cells(down)}`, gold, 700), columns > 1 && label(186, 14, `column stride: ${cells(right)}`, blue, 700),
        ...(rows > 1 ? arc(start, start + down, gold) : []), ...(columns > 1 ? arc(start, start + right, blue) : []),
        ...strip.flat(), label(2, 132, `tensor, ${rows} × ${columns}`), ...grid.flat(2)));
      if (outside) return ["PyTorch refuses", `${outside} of ${flat.length} elements would lie outside the storage.`];
      return [`${flat.length} elements from ${cells(values.kept)} of memory, ${values.contiguous ? "contiguous" : "not contiguous"}`, `Row by row: ${flat.join(" ")}.`];
    },
  };
})();
