// What a GPU keeps of a training run, beside the GPU's memory, and how long the run takes.
window.litbookPicture = (() => {
  const MODELS = { // layers, width, heads of queries, their size, width inside the feed-forward part, parameters
    "Llama-3.2-1B": [16, 2048, 32, 64, 8192, 1235814400], "Llama-3-8B": [32, 4096, 32, 128, 14336, 8030261248],
    "Llama-3-70B": [80, 8192, 64, 128, 28672, 70553706496], "Llama-3-405B": [126, 16384, 128, 128, 53248, 405853388800],
  };
  const RECIPES = { "AdamW, float32 throughout": 16, "AdamW, bfloat16, float32 master copy": 16, "AdamW, bfloat16 throughout": 8 };
  const FRAME = 280, CARD = 80e9, ROOM = 0.9 * CARD, VOCABULARY = 128256, RATE = 989.5e12 / 2, TOKENS = 15e12, DAY = 86400, KV_HEADS = 8;
  const size = (bytes) => (bytes < 1e9 ? `${Number((bytes / 1e6).toPrecision(3))} MB` : `${bytes < 1e12 ? Number((bytes / 1e9).toPrecision(4)) : (bytes / 1e9).toLocaleString("en", { maximumFractionDigits: 0 })} GB`);
  const long = (days) => (days < 1 ? `${Number((24 * days).toPrecision(3))} hours` : days < 730 ? `${Number(days.toPrecision(3))} days` : `${Number((days / 365).toPrecision(3)).toLocaleString("en")} years`);

  return {
    size: [360, 144],
    values({ model, cards, context, recipe, activations_kept }) {
      const [layers, d, heads, head, hidden, parameters] = MODELS[model];
      // two norms; input, queries, keys, values and result of attention; its sums; the feed-forward part
      const token = 2 * (2 * d + 4) + 2 * (d + 2 * heads * head + 2 * KV_HEADS * head) + 4 * heads + 2 * (d + 4 * hidden);
      const kept = activations_kept === "all" ? layers * token : layers * 2 * d + token;
      const days = (6 * parameters * TOKENS) / (RATE * cards * DAY);
      return { state: (RECIPES[recipe] * parameters) / cards, activations: kept * context, softmax: 4 * VOCABULARY * context, days, gpu_hours: 24 * days * cards };
    },

    draw(stage, { place, values, make }) {
      const need = values.state + values.activations + values.softmax, scale = FRAME / CARD, end = 357, fits = need <= ROOM;
      const text = (x, y, words, more) => make("text", { x, y, style: "fill:currentColor", ...more }, words);
      const box = (x, width, hue) => make("rect", { x: Math.min(end, 3 + x * scale), y: 34, width: Math.max(0, Math.min(end, 3 + (x + width) * scale) - Math.min(end, 3 + x * scale)), height: 44, style: `fill:color-mix(in srgb, var(${hue}) 60%, transparent)` });
      const key = (x, y, hue, words) => [make("rect", { x, y: y - 12, width: 13, height: 13, style: `fill:color-mix(in srgb, var(${hue}) 60%, transparent)` }), text(x + 20, y, words)];
      const edge = 3 + CARD * scale;
      stage.replaceChildren(make("svg", { viewBox: "0 0 360 144", "aria-hidden": "true", style: "font-size:14px;width:100%" },
        box(0, values.state, "--lb-accent"), box(values.state, values.activations, "--lb-hot"), box(values.state + values.activations, values.softmax, "--lb-tick"),
        make("rect", { x: 3 + ROOM * scale, y: 32, width: (CARD - ROOM) * scale, height: 48, style: "fill:none;stroke:currentColor;stroke-dasharray:4 4" }),
        make("rect", { x: 3, y: 27, width: CARD * scale, height: 58, rx: 4, style: "fill:none;stroke:currentColor;stroke-width:2.5" }),
        text(edge, 18, "one H100: 80 GB", { "text-anchor": "end" }),
        3 + need * scale > end && make("path", { d: "M358 30l-6 8l6 8l-6 8l6 8l-6 8l6 8l-6 6H362V30Z", style: "fill:var(--lb-paper)" }), // torn: it is longer
        ...key(3, 112, "--lb-accent", `state ${size(values.state)}`), ...key(172, 112, "--lb-hot", `activations ${size(values.activations)}`),
        ...key(3, 136, "--lb-tick", `softmax ${size(values.softmax)}`), text(192, 136, `kept free ${size(CARD - ROOM)}`)));
      const one = place.cards === 1;
      return [`${fits ? "✓ Fits" : "✗ Does not fit"}: ${size(need)} per GPU`, `${place.model} on ${place.cards.toLocaleString("en")} GPU${one ? "" : "s"}. 15 trillion tokens at half the peak take ${long(values.days)}, ${Number(values.gpu_hours.toPrecision(3)).toLocaleString("en")} GPU-hours.`];
    },
  };
})();
