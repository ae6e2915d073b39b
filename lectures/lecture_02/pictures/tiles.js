// A product of 8 * 8 matrices in tiles: which tiles are in the cache, which entries are complete, what was loaded.
window.litbookPicture = (() => {
  const N = 8, CELL = 15, GAP = 22, LEFT = 30, TOP = 24, SIDE = N * CELL, ALL = 2 * N ** 3;
  return {
    size: [360, 330],
    draw(stage, { place: { tile, eighths_done: part }, values: { row, column, inner, steps, loaded }, make }) {
      const X = [LEFT, TOP + SIDE + GAP], W = [LEFT + SIDE + GAP, TOP], Y = [W[0], X[1]], bar = Y[1] + SIDE + 16;
      const fill = (hue, share) => `fill:color-mix(in srgb, var(${hue}) ${share}%, transparent);stroke:var(${hue})`;
      const box = ([x, y], r, c, hue, share, more = "") => make("rect", { x: x + c * CELL, y: y + r * CELL, width: tile * CELL, height: tile * CELL, style: `${fill(hue, share)};stroke-width:2.5;${more}` });
      const text = (x, y, words, more) => make("text", { x, y, style: "fill:currentColor", ...more }, words);
      const grid = ([x, y]) => Array.from({ length: N * N }, (_, i) => make("rect", { x: x + (i % N) * CELL, y: y + Math.floor(i / N) * CELL, width: CELL, height: CELL, style: fill("--lb-soft", 6) }));
      const done = []; // tiles of the result that are complete: all before this one, and this one in its last step
      for (let r = 0; r < N; r += tile)
        for (let c = 0; c < N; c += tile)
          if (part && (r < row || (r === row && c < column) || (r === row && c === column && inner + tile === N))) done.push(box(Y, r, c, "--lb-tick", 30, "stroke-width:0"));
      const now = part ? [box(X, row, inner, "--lb-hot", 55), box(W, inner, column, "--lb-hot", 55), box(Y, row, column, "--lb-hot", 25)] : [];
      const wide = 300 * loaded / ALL;
      stage.replaceChildren(make("svg", { viewBox: "0 0 360 330", "aria-hidden": "true", style: "font-size:14px;width:100%" },
        ...[X, W, Y].flatMap(grid), ...done, ...now,
        text(X[0] + SIDE / 2, X[1] - 7, "x", { "text-anchor": "middle" }), text(W[0] + SIDE / 2, W[1] - 7, "w", { "text-anchor": "middle" }),
        text(Y[0] + SIDE + 8, Y[1] + SIDE / 2 + 5, "x @ w"),
        make("rect", { x: LEFT, y: bar, width: 300, height: 10, style: fill("--lb-soft", 6) }), make("rect", { x: LEFT, y: bar, width: wide, height: 10, style: fill("--lb-hot", 60) })));
      const all = (N / tile) ** 3;
      return [`${loaded.toLocaleString("en")} elements loaded; one by one it would be ${Math.round(ALL * steps / all).toLocaleString("en")}`, `Step ${steps} of ${all}: ${part ? `${2 * tile * tile} elements of x and w are in the cache` : "nothing is loaded yet"}.`];
    },
  };
})();
