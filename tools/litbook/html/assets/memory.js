/* What the player draws of memory, loaded when it opens: each small storage, and the names that read it. */
window.litbookMemory = (it, words, h) => {
  const memories = new Map(); // by row of `values`: its storage as one dtype, what the tensor reads of it, all of it, and how that was before
  const latest = [], given = it.memories;
  for (let i = 0; i < given.length; i += 4) {
    const [row, storage, layout, held] = given.subarray(i, i + 4), [reads, shape] = it.data.reads[layout], cells = it.data.cells[held];
    const step = it.values[4 * row], above = latest[storage] || { step, cells };
    const before = above.step === step ? above.before || cells : above.cells; // several names may show one change
    memories.set(row, { storage, reads, cells, before, shape });
    latest[storage] = { step, cells, before };
  }
  return (frames, k, changes) => { // each small storage with the names that read it; the cells that step k has changed
    const found = new Map();
    for (const [f] of frames) for (const [nth, list] of it.vars[f] || []) {
      const now = it.at(list, k), held = now && memories.get(now.row);
      if (!held) continue;
      if (!found.has(held.storage)) found.set(held.storage, { step: -1, names: [] });
      const one = found.get(held.storage);
      if (now.step >= one.step) Object.assign(one, { step: now.step, held });
      one.names.push([it.data.names[nth], held.reads, held.shape]);
    }
    return [...found.values()].map(({ step, held: { cells, before }, names }, hue) => { // of a storage that this step has not looked at it is said when it was so
      const fresh = (i) => step === k && before[i] !== cells[i];
      if (cells.some((_, i) => fresh(i))) changes.push(`${words.memory} ${cells.join(" ")}`);
      const table = h("table", `lbp-hue${hue % 5}`,
        h("tr", {}, h("th", {}, words.memory), ...cells.map((text, i) => h("td", fresh(i) ? "lbp-new" : null, text))),
        ...names.map(([name, reads]) => h("tr", {}, h("th", { scope: "row" }, name, h("small", {}, ` ${words.order}`)), ...cells.map((_, i) => {
          const at = reads.indexOf(i);
          return h("td", at < 0 ? null : "lbp-read", at < 0 ? "" : String(at + 1));
        }))));
      // The same cells as each tensor has them, a matrix as rows.
      const grids = names.filter(([, , shape]) => shape.length > 1).slice(0, 4).map(([name, reads, shape]) => {
        const wide = shape[shape.length - 1], lines = Array.from({ length: Math.min(shape[0], 8) }, (_, i) => reads.slice(i * wide, (i + 1) * wide));
        return h("table", {}, h("caption", {}, name), ...lines.map((line) => h("tr", {}, ...line.map((at) => h("td", fresh(at) ? "lbp-new" : "lbp-read", cells[at])))));
      });
      const old = step < it.touched(k);
      return h("div", old ? "lbp-memory lbp-old" : "lbp-memory", old ? h("small", {}, it.seen(step)) : null, table, h("div", `lbp-grids lbp-hue${hue % 5}`, ...grids));
    });
  };
};
