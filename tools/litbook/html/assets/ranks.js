/* What the player draws where a page ran on several ranks, loaded when it opens: the innermost call's names on each rank,
   side by side. One clock serves all of them: a line of a section, run for the n-th time. */
window.litbookRanks = (tracks, mine, words, h) => {
  const clocks = tracks.map((it) => { // of each line its steps; of each step which of them it is
    const steps = new Map(), nth = [], line = [];
    for (let k = 0; k < it.count; k++) {
      const f = it.frame(k), at = `${it.section(k)[2]} ${it.id(f, it.line(k)[0])} ${it.data.frames[f][0]}`;
      if (!steps.has(at)) steps.set(at, []);
      line.push(at);
      nth.push(steps.get(at).push(k) - 1);
    }
    return { steps, nth, line };
  });
  const brief = (text) => (text.length > 60 ? `${text.slice(0, 59)}…` : text);
  const common = (texts) => (new Set(texts).size === 1 ? texts[0] : ""); // what all say is said once, beside the name
  const typed = (text) => text.split(" · ").slice(0, -1).join(" · "); // of a tensor its dtype, shape and bytes
  const untyped = (text, type) => (type && typed(text) === type ? text.slice(type.length + 3) : text);
  function row([name, cells]) {
    const here = cells.filter(Boolean), type = common(here.map(({ text }) => typed(text))), seen = common(here.map((one) => one.seen));
    const cell = (one) => h("td", one.changed ? "lbp-new" : one.old ? "lbp-old" : null,
      one.was !== null && h("small", {}, `${brief(untyped(one.was, type))} → `),
      brief(untyped(one.text, type)), one.seen && !seen && h("small", {}, ` ${one.seen}`));
    return h("tr", {}, h("th", { scope: "row" }, name, (type || seen) && h("small", {}, ` ${[type, seen].filter(Boolean).join(", ")}`)),
      ...tracks.map((_, rank) => (cells[rank] ? cell(cells[rank]) : h("td", {}, "–"))));
  }
  return (k) => { // a row for each name that differs between ranks, or that this line has changed on one of them
    if (tracks.length < 2) return [];
    const { line, nth } = clocks[mine], there = clocks.map(({ steps }) => (steps.get(line[k]) || [])[nth[k]]), rows = new Map();
    if (there.filter((step) => step !== undefined).length < 2) return [];
    tracks.forEach((it, rank) => {
      const step = there[rank];
      for (const [name, list] of (step !== undefined && it.vars[it.frame(step)]) || []) {
        const now = it.at(list, step), before = it.at(list, step - 1), its = it.data.names[name];
        if (!now) continue;
        if (!rows.has(its)) rows.set(its, []);
        const text = it.data.texts[now.text], was = now.changed && before ? it.data.texts[before.text] : null;
        rows.get(its)[rank] = { text, was: was === text ? null : was, changed: now.changed, old: now.old, seen: now.old ? it.seen(now.step) : "" };
      }
    });
    const changed = ([, cells]) => cells.some((one) => one && one.changed), differs = ([, cells]) => new Set(tracks.map((_, rank) => cells[rank]?.text)).size > 1;
    const told = [...rows].filter((one) => changed(one) || differs(one)).sort((a, b) => changed(b) - changed(a));
    if (!told.length) return [];
    return [h("div", { class: "lbp-ranks", tabindex: 0, role: "group", "aria-label": words.onRanks }, h("table", {}, h("caption", {}, words.onRanks),
      h("tr", {}, h("td"), ...tracks.map((_, rank) => h("th", { scope: "col", class: rank === mine && "lbp-mine" }, words.rank.replace("{n}", rank),
        there[rank] === undefined && h("small", {}, ` ${words.absent}`)))),
      ...told.slice(0, 12).map(row)))];
  };
};
