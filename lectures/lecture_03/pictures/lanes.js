// What the program hands over and what the card does, one operation after the other, in two lanes.
window.litbookPicture = (() => {
  const LEFT = 2, WIDE = 494, HUES = ["--lb-accent", "--lb-tick"];
  return {
    draw(stage, { place, values, make }) {
      const { launch, operation } = place, scale = WIDE / Math.max(60, values.total), drawn = [];
      const text = (x, y, words, more) => make("text", { x, y, style: "fill:currentColor", ...more }, words);
      const box = (from, time, y, hue) => make("rect", { x: LEFT + from * scale, y, width: Math.max(time * scale - 0.8, 0.8), height: 34, style: `fill:color-mix(in srgb, var(${hue}) 55%, transparent);stroke:var(${hue})` });
      values.starts.forEach((start, i) => {
        const hue = HUES[i % 2], handed = values.handed[i], from = LEFT + handed * scale, to = LEFT + start * scale;
        drawn.push(box(handed - launch, launch, 24, hue), box(start, operation, 100, hue));
        drawn.push(make("path", { d: `M${from} 58L${to} 100`, style: `fill:none;stroke:var(${hue});stroke-width:1.2` }));
        if (operation * scale > 14) drawn.push(text(to + (operation * scale) / 2, 122, String(i + 1), { "text-anchor": "middle" }));
      });
      const end = LEFT + values.total * scale;
      stage.replaceChildren(make("svg", { viewBox: "0 0 500 168", "aria-hidden": "true", style: "font-size:15px;width:100%" }, text(2, 16, "program: launches"), text(2, 152, "card: operations"), ...drawn,
        make("path", { d: `M${end} 18V134`, style: "stroke:currentColor;stroke-width:1.5;stroke-dasharray:4 3" }), text(Math.max(end, 190), 152, `${values.total} µs`, { "text-anchor": "end", "font-weight": 700 })));
      return `Eight operations take ${values.total} µs. Of these the card works ${8 * operation} µs and waits ${values.idle} µs. The program has launched the last one after ${values.handed[7]} µs.`;
    },
  };
})();
