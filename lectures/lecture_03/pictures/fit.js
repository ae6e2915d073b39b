// What a GPU keeps of a training run, in a frame of its memory that is always as wide, and how long the run takes.
window.litbookPicture = (() => {
  const MODELS = { // layers, model dimension, query heads, head dimension, FFN size, parameters, embeddings looked up only
    "Llama-3.2-1B": [16, 2048, 32, 64, 8192, 1235814400, 0], "Llama-3-8B": [32, 4096, 32, 128, 14336, 8030261248, 1],
    "Llama-3-70B": [80, 8192, 64, 128, 28672, 70553706496, 1], "Llama-3-405B": [126, 16384, 128, 128, 53248, 405853388800, 1],
  };
  const GPU = 80e9, ROOM = 0.9 * GPU, VOCABULARY = 128256, RATE = 0.4 * 1979e12 / 2, TOKENS = 15e12, DAY = 86400, KV_HEADS = 8, STATE = 16;
  const size = (bytes) => (bytes < 1e9 ? `${Number((bytes / 1e6).toPrecision(3))} MB` : `${bytes < 1e12 ? Number((bytes / 1e9).toPrecision(4)) : (bytes / 1e9).toLocaleString("en", { maximumFractionDigits: 0 })} GB`);
  const long = (days) => (days < 1 ? `${Number((24 * days).toPrecision(3))} hours` : days < 730 ? `${Number(days.toPrecision(3))} days` : `${Number((days / 365.25).toPrecision(3)).toLocaleString("en")} years`);

  return {
    size: [360, 144],
    values({ model, devices, context, activations_kept }) {
      const [layers, d, heads, head, hidden, parameters, looked] = MODELS[model], again = activations_kept !== "all";
      // two norms; input, queries, keys, values and result of attention; its sums; the FFN
      const token = 2 * (2 * d + 4) + 2 * (d + 2 * heads * head + 2 * KV_HEADS * head) + 4 * heads + 2 * (d + 4 * hidden);
      const kept = again ? layers * 2 * d + token : layers * token;
      const table = VOCABULARY * d, active = parameters - looked * table - (2 * layers + 1) * d, attention = 4 * layers * heads * head * context;
      const second = 2 * (active - table - layers * d * hidden) + attention; // the last matmul of a layer is not repeated
      const days = (TOKENS * (3 * (2 * active + attention) + again * second)) / (RATE * devices * DAY);
      return { state: (STATE * parameters) / devices, activations: kept * context, softmax: 4 * VOCABULARY * context, days, gpu_hours: 24 * days * devices };
    },

    draw(stage, { place, values, make }) {
      const need = values.state + values.activations + values.softmax, scale = 116 / GPU, end = 357, fits = need <= ROOM, x = (bytes) => Math.min(end, 3 + bytes * scale);
      const text = (left, y, words, more) => make("text", { x: left, y, style: "fill:currentColor", ...more }, words);
      const box = (from, bytes, hue) => make("rect", { x: x(from), y: 34, width: x(from + bytes) - x(from), height: 44, style: `fill:color-mix(in srgb, var(${hue}) 60%, transparent)` });
      const key = (left, y, hue, words) => [make("rect", { x: left, y: y - 12, width: 13, height: 13, style: `fill:color-mix(in srgb, var(${hue}) 60%, transparent)` }), text(left + 20, y, words)];
      stage.replaceChildren(make("svg", { viewBox: "0 0 360 144", "aria-hidden": "true", style: "font-size:14px;width:100%" },
        box(0, values.state, "--lb-accent"), box(values.state, values.activations, "--lb-hot"), box(values.state + values.activations, values.softmax, "--lb-tick"),
        make("rect", { x: x(ROOM), y: 32, width: (GPU - ROOM) * scale, height: 48, style: "fill:none;stroke:currentColor;stroke-dasharray:4 4" }),
        make("rect", { x: 3, y: 27, width: GPU * scale, height: 58, rx: 4, style: "fill:none;stroke:currentColor;stroke-width:2.5" }),
        text(3, 18, "one H100: 80 GB, a tenth kept free"),
        3 + need * scale > end && make("path", { d: "M358 30l-6 8l6 8l-6 8l6 8l-6 8l6 8l-6 6H362V30Z", style: "fill:var(--lb-paper)" }), // torn: it is longer
        ...key(3, 112, "--lb-accent", `state ${size(values.state)}`), ...key(172, 112, "--lb-hot", `activations ${size(values.activations)}`),
        ...key(3, 136, "--lb-tick", `softmax ${size(values.softmax)}`)));
      const gpus = place.devices === 1 ? "one GPU" : `${place.devices.toLocaleString("en")} GPUs`;
      const run = `${place.model} on ${gpus}, ${place.activations_kept === "all" ? "all activations" : "only inputs of blocks"} kept.`;
      return [`${fits ? "✓ It fits" : "✗ It does not fit"}: ${size(need)} of ${size(ROOM)} usable`, fits ? `${run} 15 trillion tokens at 40 % of the peak take ${long(values.days)}, ${Number(values.gpu_hours.toPrecision(3)).toLocaleString("en")} GPU-hours.` : `${run} No training time, because it does not fit.`];
    },
  };
})();
