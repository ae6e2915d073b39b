// The matrices of a block of Llama-3-8B to one scale, and what heads that share keys save.
window.litbookPicture = (() => {
  const D = 4096, HEAD = 128, LAYERS = 32, ALL = 32, NAMES = ["query", "key", "value", "out", "gate", "up", "down"];
  const GAP = 8, SCALE = (356 - GAP) / (2 * 16384), HIGH = D * SCALE; // two of the widest beside each other
  const HUES = ["--lb-accent", "--lb-hot", "--lb-hot", "--lb-accent", "--lb-tick", "--lb-tick", "--lb-tick"];
  const words = (n, unit) => {
    const i = Math.min(4, Math.floor(Math.log10(n) / 3));
    return `${Number((n / 1000 ** i).toPrecision(4))} ${["", "k", "M", "G", "T"][i]}${unit}`;
  };

  return {
    size: [360, 360],
    values({ kv_heads: heads, inner_width: hidden, context }) {
      const kv = heads * HEAD, matrices = [[D, D], [D, kv], [D, kv], [D, D], [D, hidden], [D, hidden], [hidden, D]];
      return {
        matrices, weights: matrices.reduce((sum, [rows, columns]) => sum + rows * columns, 0),
        attention: 2 * 2 * context * D, cache: 2 * 2 * LAYERS * kv * context,
      };
    },

    draw(stage, { place, values, at, make }) {
      const text = (x, y, words, more) => make("text", { x, y, style: "fill:currentColor", ...more }, words), drawn = [];
      let x = 2;
      values.matrices.forEach(([rows, columns], i) => {
        const wide = Math.max(rows, columns) * SCALE, thin = Math.min(rows, columns) * SCALE, lies = i > 3;
        if (i === 4 || i === 6) x = 2; // a row of its own
        const top = 20 + ((i > 3) + (i > 5)) * (HIGH + 30), width = lies ? wide : columns * SCALE, height = lies ? thin : HIGH;
        drawn.push(make("rect", { x, y: top, width, height, style: `fill:color-mix(in srgb, var(${HUES[i]}) 40%, transparent);stroke:var(${HUES[i]})` }));
        drawn.push(text(x, top - 5, NAMES[i]));
        x += Math.max(width, 48) + GAP;
      });
      const most = at({ kv_heads: ALL }), from = 20 + 3 * (HIGH + 30) + 14;
      const bars = [["weights of the block", "weights", ""], ["attention, per token", "attention", "FLOP"], ["KV cache, per sequence", "cache", "B"]];
      bars.forEach(([name, key, unit], i) => {
        const y = from + i * 44, part = values[key] / most[key];
        drawn.push(text(2, y - 5, name), text(358, y - 5, `${words(values[key], unit)}, ${Number((100 * part).toPrecision(3))} %`, { "text-anchor": "end", "font-weight": 700 }));
        drawn.push(make("rect", { x: 2, y, width: 356 * part, height: 14, style: `fill:color-mix(in srgb, var(${i === 2 ? "--lb-hot" : "--lb-accent"}) 60%, transparent)` }));
        drawn.push(make("rect", { x: 2, y, width: 356, height: 14, style: "fill:none;stroke:currentColor;stroke-width:.8" }));
      });
      stage.replaceChildren(make("svg", { viewBox: "0 0 360 360", "aria-hidden": "true", style: "font-size:14px;width:100%" }, ...drawn));
      const [, key] = values.matrices;
      return [`${place.kv_heads} KV ${place.kv_heads === 1 ? "head" : "heads"}: ${Number((100 * values.cache / most.cache).toPrecision(3))} % of the KV cache of ${ALL}`, `The matrices of keys and values are ${key[0]} × ${key[1]}. The FLOPs of attention are ${Number((100 * values.attention / most.attention).toPrecision(3))} % of those with ${ALL} KV heads.`];
    },
  };
})();
