// What the program hands over and what the GPU does, one operation after the other, in two lanes.
window.litbookPicture = (() => {
  const LEFT = 2, WIDE = 348, FRAME = 120, HUES = ["--lb-accent", "--lb-tick"];
  return {
    size: [360, 160],
    draw(stage, { place, values, make }) {
      const { launch, operation } = place, scale = WIDE / FRAME, drawn = [];
      const text = (x, y, words, more) => make("text", { x, y, style: "fill:currentColor", ...more }, words);
      const box = (from, time, y, hue) => from < FRAME && make("rect", { x: LEFT + from * scale, y, width: Math.max((Math.min(FRAME, from + time) - from) * scale - 0.8, 0.8), height: 34, style: `fill:color-mix(in srgb, var(${hue}) 55%, transparent);stroke:var(${hue})` });
      values.starts.forEach((start, i) => {
        const hue = HUES[i % 2], handed = values.handed[i], from = LEFT + handed * scale, to = LEFT + start * scale;
        drawn.push(box(handed - launch, launch, 24, hue), box(start, operation, 100, hue));
        if (start < FRAME) drawn.push(make("path", { d: `M${from} 58L${to} 100`, style: `fill:none;stroke:var(${hue});stroke-width:1.2` }));
        if (operation * scale > 14 && start + operation < FRAME) drawn.push(text(to + (operation * scale) / 2, 122, String(i + 1), { "text-anchor": "middle" }));
      });
      const end = LEFT + values.total * scale;
      stage.replaceChildren(make("svg", { viewBox: "0 0 360 160", "aria-hidden": "true", style: "font-size:14px;width:100%" }, text(2, 16, "program: launches"), text(2, 152, "GPU: operations"), ...drawn,
        values.total <= FRAME ? make("path", { d: `M${end} 18V134`, style: "stroke:currentColor;stroke-width:1.5;stroke-dasharray:4 3" }) : make("path", { d: "M352 96l-5 6l5 6l-5 6l5 6l-5 6l5 6l-5 6H362V96Z", style: "fill:var(--lb-paper)" }),
        text(LEFT + WIDE, 152, `0 to ${FRAME} µs`, { "text-anchor": "end" })));
      return [`Eight operations take ${values.total} µs; the GPU is idle for ${values.idle} µs`, `It works for ${8 * operation} µs. The program has launched the last operation after ${values.handed[7]} µs.`];
    },
  };
})();
