// Twelve requests in slots, in fixed batches above and refilled at once below; a step is as wide at every place.
window.litbookPicture = (() => {
  const STEPS = 56, LEFT = 4, WIDE = 352, ROW = 15, HUES = ["--lb-accent", "--lb-tick", "--lb-hot"];
  const waits = (spans) => spans.reduce((sum, [, arrived, start]) => sum + start - arrived, 0) / spans.length;
  const last = (spans) => Math.max(...spans.map(([, , , end]) => end));
  return {
    size: [360, 258],
    draw(stage, { place, values, make }) {
      const drawn = [], told = [], scale = WIDE / STEPS, high = 6 * ROW;
      Object.entries(values).forEach(([name, spans], panel) => {
        const top = 24 + panel * (high + 40), ends = last(spans), wait = waits(spans).toFixed(1);
        drawn.push(make("text", { x: LEFT, y: top - 8, style: "fill:currentColor", "font-weight": 700 }, `${name}: ${ends} steps`));
        for (let slot = 0; slot < place.slots; slot++)
          drawn.push(make("rect", { x: LEFT, y: top + slot * ROW, width: ends * scale, height: ROW - 2, style: "fill:color-mix(in srgb, currentColor 9%, transparent)" }));
        spans.forEach(([slot, , start, end], i) => {
          const hue = HUES[i % HUES.length];
          drawn.push(make("rect", { x: LEFT + start * scale, y: top + slot * ROW, width: (end - start) * scale - 1, height: ROW - 2, style: `fill:color-mix(in srgb, var(${hue}) 60%, transparent)` }));
        });
        spans.forEach(([, arrived]) => drawn.push(make("path", { d: `M${LEFT + arrived * scale} ${top + high - 4}v6`, style: "stroke:currentColor;stroke-width:1.2" })));
        told.push(`${name}: all done after ${ends} steps, ${wait} steps of waiting per request`);
      });
      stage.replaceChildren(make("svg", { viewBox: "0 0 360 258", "aria-hidden": "true", style: "font-size:14px;width:100%" }, ...drawn));
      const [fixed, refilled] = Object.values(values).map(last);
      return [`Refilled slots end after ${refilled} steps, fixed batches after ${fixed}`, `${told.join(". ")}.`];
    },
  };
})();
