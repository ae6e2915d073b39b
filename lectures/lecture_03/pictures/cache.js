// A GPU's memory with the weights of a model and the KV caches of many sequences, and the time to read both for one token each.
window.litbookPicture = (() => {
  const FRAME = 296, LEFT = 3, END = 357;
  const size = (bytes) => `${Number((bytes / 1e9).toPrecision(3))} GB`, number = (value) => Number(value.toPrecision(3)).toLocaleString("en");
  const torn = (y, high) => `M358 ${y - 3}l-6 ${high / 8 + 1}${`l6 ${high / 8}l-6 ${high / 8}`.repeat(4)}H362V${y - 3}Z`;
  return {
    size: [360, 232],
    draw(stage, { place, values: { memory, weights, cache, weights_ms, caches_ms, total, fits }, make }) {
      const drawn = [], scale = FRAME / memory, need = weights + cache * place.sequences;
      const text = (x, y, words, more) => make("text", { x, y, style: "fill:currentColor", ...more }, words);
      const fill = (hue) => `fill:color-mix(in srgb, var(${hue}) 55%, transparent)`, x = (bytes) => Math.min(END, LEFT + bytes * scale);
      drawn.push(make("rect", { x: LEFT, y: 30, width: x(weights) - LEFT, height: 52, style: fill("--lb-accent") }));
      drawn.push(make("rect", { x: x(weights), y: 30, width: x(need) - x(weights), height: 52, style: fill("--lb-hot") }));
      const stripes = []; // one sequence each, where they can be told apart
      if (cache * scale >= 2.5) for (let i = 1; i < place.sequences && LEFT + (weights + i * cache) * scale < END; i++) stripes.push(`M${x(weights + i * cache)} 30v52`);
      drawn.push(make("path", { d: stripes.join("") || "M0 0", style: "stroke:var(--lb-paper);stroke-width:1" }));
      if (need * scale + LEFT > END) drawn.push(make("path", { d: torn(30, 52), style: "fill:var(--lb-paper)" }));
      drawn.push(make("rect", { x: LEFT, y: 25, width: FRAME, height: 62, rx: 4, style: "fill:none;stroke:currentColor;stroke-width:2.5" }), text(LEFT + FRAME, 17, `memory of one H100: ${size(memory)}`, { "text-anchor": "end" }));
      const key = (left, hue, words) => [make("rect", { x: left, y: 95, width: 13, height: 13, style: fill(hue) }), text(left + 19, 106, words)];
      drawn.push(...key(LEFT, "--lb-accent", `weights ${size(weights)}`), ...key(160, "--lb-hot", `KV caches ${size(need - weights)}`));
      drawn.push(text(LEFT, 138, "time to read them, for one step", { "font-weight": 700 }));
      const most = (weights_ms * memory) / weights; // all of the memory, read once
      [["weights", weights_ms, "--lb-accent"], ["caches", caches_ms, "--lb-hot"]].forEach(([name, ms, hue], i) => {
        const y = 148 + i * 40, end = LEFT + (ms / most) * FRAME;
        drawn.push(make("rect", { x: LEFT, y, width: Math.min(END, end) - LEFT, height: 14, style: fill(hue) }), text(LEFT, y + 29, `${name} ${number(ms)} ms`));
        if (end > END) drawn.push(make("path", { d: torn(y, 14), style: "fill:var(--lb-paper)" }));
      });
      stage.replaceChildren(make("svg", { viewBox: "0 0 360 232", "aria-hidden": "true", style: "font-size:14px;width:100%" }, ...drawn));
      return [fits ? `✓ Fits: ${number(total)} tokens/s in total, ${number(total / place.sequences)} each` : "✗ The KV caches do not fit beside the weights",
        `${place.sequences} sequence${place.sequences > 1 ? "s" : ""} of ${place.tokens.toLocaleString("en")} tokens: a cache is ${size(cache)}. Reading the caches takes ${number(caches_ms / weights_ms)} times as long as reading the weights.`];
    },
  };
})();
