// A number on the number line of five formats: a line for each number that a format has in the window, and the nearest one.
window.litbookPicture = (() => {
  const WIDE = 352, LEFT = 4, ROW = 48, TOP = 20;
  const said = (number) => (typeof number === "number" ? String(Number(number.toPrecision(7))) : number);
  return {
    size: [360, 290],
    draw(stage, { place: { number, zoom }, values, make }) {
      const drawn = [], text = (x, y, words, more) => make("text", { x, y, style: "fill:currentColor", ...more }, words);
      const middle = LEFT + WIDE / 2, half = number / (2 * zoom);
      Object.entries(values).forEach(([format, [nearest, error, count, ticks]], row) => {
        const top = TOP + row * ROW, y = top + 20, exact = nearest === number;
        drawn.push(text(LEFT, top + 14, format, { "font-weight": 700 }));
        drawn.push(text(LEFT + WIDE, top + 14, exact ? `✓ ${said(number)}` : error == null ? `${said(nearest)}` : `${said(nearest)}, error ${Number(error.toPrecision(2))} %`, { "text-anchor": "end" }));
        drawn.push(make("rect", { x: LEFT, y, width: WIDE, height: 20, style: `fill:color-mix(in srgb, var(--lb-accent) ${count > ticks.length ? 60 : 8}%, transparent)` }));
        drawn.push(make("path", { d: ticks.map((at) => `M${LEFT + (at / 1000) * WIDE} ${y}v20`).join("") || "M0 0", style: "stroke:var(--lb-accent);stroke-width:1.5" }));
        const at = middle + ((nearest - number) / half) * (WIDE / 2);
        if (at >= LEFT && at <= LEFT + WIDE) drawn.push(make("path", { d: `M${at} ${y}v20`, style: "stroke:var(--lb-accent);stroke-width:4" }));
      });
      const end = TOP + 5 * ROW - 4;
      drawn.push(make("path", { d: `M${middle} ${TOP + 18}V${end}`, style: "stroke:var(--lb-fail);stroke-width:2;stroke-dasharray:4 3" }));
      drawn.push(text(LEFT, end + 18, said(number - half)), text(middle, end + 18, said(number), { "text-anchor": "middle", style: "fill:var(--lb-fail);font-weight:700" }), text(LEFT + WIDE, end + 18, said(number + half), { "text-anchor": "end" }));
      stage.replaceChildren(make("svg", { viewBox: "0 0 360 290", "aria-hidden": "true", style: "font-size:14px;width:100%" }, ...drawn));
      const exact = Object.keys(values).filter((format) => values[format][0] === number), counts = Object.entries(values).map(([format, [, , count]]) => `${format} ${count.toLocaleString("en")}`);
      return [`bfloat16 stores ${said(number)} as ${said(values.bfloat16[0])}`, `${exact.length ? `Exact in ${exact.join(", ")}.` : "Exact in none of the five."} Numbers in this window: ${counts.join(", ")}.`];
    },
  };
})();
