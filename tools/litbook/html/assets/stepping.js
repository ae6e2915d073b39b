/* The panel that steps through a page, loaded when a reader opens the player. In go the page's steps, its words and
   the two makers of elements of player.js; every text goes into the page as text. */
window.litbookStepping = (shared) => {
  "use strict";
  const { h, icon, words, lang, ended, ICONS } = shared;
  const doc = document, root = doc.documentElement;
  const FIELDS = "input, textarea, select, [contenteditable]:not([contenteditable=false]), [role=textbox]", SCROLLS = ".lb-scroll, .lb-slices";
  const SIGNS = { holds: "✓", fails: "✗" };
  Object.assign(ICONS, {
    into: "M12 4v10M7 9l5 5 5-5M5 19h14", change: "M5 5l8 7-8 7zM17 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8", play: "M6 5v14l6-5V10zM14 5v14M19 5v14", guess: "M9 9a3 3 0 1 1 4 3c-1 .5-1 1-1 2M12 18h.1M4 4h16v17H4z",
    first: "M6 5v14M19 5l-9 7 9 7z", back: "M16 5l-9 7 9 7z", forward: "M8 5l9 7-9 7z", last: "M18 5v14M5 5l9 7-9 7z",
    over: "M4 13a8 7 0 0 1 15-2M20 4v7h-7M12 19h.1", out: "M12 14V4M7 9l5-5 5 5M5 19h14",
    sections: "M5 6h14M5 12h14M5 18h8", reveal: "M3 7h18M3 12h18M5 17h2M11 17h2M17 17h2", speaker: "M4 5h16v11h-8l-5 4v-4H4z",
    full: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5", help: "M9 9a3 3 0 1 1 4 3c-1 .5-1 1-1 2M12 18h.1", close: "M6 6l12 12M18 6L6 18",
  });
  const say = (name, its) => words[name].replace(/{(\w+)}/g, (_, it) => its[it]);
  const grouped = (n) => n.toLocaleString(lang), dim = (text) => h("p", "lbp-fold", text);
  const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
  function rows(list, width) { // each number is the difference to the one above it, see html/player.py
    const found = Int32Array.from(list);
    for (let i = width; i < found.length; i++) found[i] += found[i - width];
    return found;
  }

  /* ---- one page's steps */

  function track(data) {
    const steps = rows(data.steps, 2), count = steps.length / 2, vars = [], root = new Int32Array(count);
    const values = rows(data.values, 4), turned = new Map(), edge = new Int32Array(count), far = new Map();
    for (let i = 0; i < values.length; i += 4) {
      const [step, frame, name, text] = values.subarray(i, i + 4);
      const names = (vars[frame] = vars[frame] || new Map());
      if (!names.has(name)) names.set(name, []);
      names.get(name).push([step, text, i / 4]);
    }
    const turns = rows(data.turns, 4), passing = new Set(data.passing), quiet = new Set(data.quiet), touched = new Int32Array(count);
    for (let k = 1; k < count; k++) touched[k] = quiet.has(k) ? touched[k - 1] : k; // the last step that may have changed an object
    for (let i = 0; i < turns.length; i += 4) turned.set(turns[i], turns.subarray(i + 1, i + 4));
    const asked = new Set(data.asked), changing = new Set(), shown = new Set(); // the steps that change a value; one that was asked for
    for (const names of vars) for (const [name, list] of names || []) list.forEach(([step, text], i) => {
      if (text < 0 || (i && list[i - 1][1] === text)) return;
      changing.add(step);
      if (asked.has(name)) shown.add(step);
    });
    const news = [...changing].sort((a, b) => a - b);
    const starts = [...turned.keys()].sort((a, b) => a - b);
    const depth = [];
    data.frames.forEach(([, parent], i) => { depth[i] = parent < 0 ? 0 : depth[parent] + 1; });
    const it = {
      count, vars, values, memories: rows(data.memories, 4), data, news, asked, shown,
      frame: (k) => steps[2 * k],
      turns(k) { // of each loop that step k is in: iteration, of how many; the outer one first
        const f = steps[2 * k], [line] = data.lines[steps[2 * k + 1]], found = [], heads = new Set();
        let low = 0, high = starts.length, seen = 0;
        while (low < high) { const mid = (low + high) >> 1; if (starts[mid] <= k) low = mid + 1; else high = mid; }
        for (let i = low - 1; i >= 0 && seen < 300; i--, seen++) {
          const at = starts[i], [turn, all, end] = turned.get(at), [head] = data.lines[steps[2 * at + 1]];
          if (steps[2 * at] !== f || heads.has(head)) continue;
          heads.add(head);
          if (head <= line && line <= end) found.unshift([turn, all]);
        }
        return found;
      },
      // the step after or before k, over the calls of helpers of other files
      beside(k, way) {
        const f = steps[2 * k], file = data.frames[f][4];
        let to = k + way;
        while (to > 0 && to < count - 1 && data.frames[steps[2 * to]][4] !== file && depth[steps[2 * to]] > depth[f]) to += way;
        return to;
      },
      depth: (k) => depth[steps[2 * k]],
      touched: (k) => touched[k],
      line: (k) => data.lines[steps[2 * k + 1]],
      id: (f, line) => `${data.files[data.frames[f][4]][0]}L${line}`,
      named: (f, line) => [data.files[data.frames[f][4]][1], say("line", { n: line })].filter((it) => it).join(", "),
      seen: (k) => say("seen", { place: it.named(it.frame(k), it.line(k)[0]) }), // where it was as it is told
      down: (k) => it.id(root[k], edge[k]), // how far down the page the section has come
      stack(k) {
        const found = [];
        let line = it.line(k)[0];
        for (let f = it.frame(k); f >= 0; f = data.frames[f][1]) { found.push([f, line]); line = data.frames[f][2]; }
        return found;
      },
      section(k) { return data.sections.filter(([at]) => at <= k).pop() || [0, "", ""]; },
      // what a variable of a frame was after step k: [step, text] of its last change, and whether step k made it
      at(list, k) {
        let low = 0, high = list.length;
        while (low < high) { const mid = (low + high) >> 1; if (list[mid][0] <= k) low = mid + 1; else high = mid; }
        if (!low || list[low - 1][1] < 0) return null;
        const [step, text, row] = list[low - 1];
        let before = low - 2;
        while (before >= 0 && list[before][0] === step) before--;
        // What can be changed in place was so at its own step: nobody has looked since.
        return { text, step, row, old: step < touched[k] && passing.has(text), changed: step === k && (before < 0 || list[before][1] !== text) };
      },
    };
    for (let k = 0; k < count; k++) { // for the progressive reveal
      let f = it.frame(k), line = it.line(k)[0];
      while (data.frames[f][1] >= 0) { line = data.frames[f][2]; f = data.frames[f][1]; }
      root[k] = f;
      edge[k] = Math.max(line, far.get(f) || 0);
      far.set(f, edge[k]);
    }
    return it;
  }

  /* ---- where lines are on the page */

  const row = (id) => { const a = doc.getElementById(id); return a && a.classList.contains("lb-n") ? a : null; };
  const below = (at) => { // what follows an anchor: a note, a heading
    const found = [];
    for (let n = at.nextElementSibling; n && !n.matches(".lb-at, .lb-code, #definitions, #references, .lb-around, .lb-foot"); n = n.nextElementSibling) found.push(n);
    return found;
  };
  const told = (id) => { const a = doc.getElementById(id), at = a && a.closest(".lb-at"); return at ? below(at) : []; };

  /* ---- the panel */

  function open(host, ranks, rank, wanted, section) {
    const data = ranks[rank], tracks = ranks.map(track), it = tracks[rank], memory = window.litbookMemory(it, words, h), onAll = window.litbookRanks(tracks, rank, words, h), button = host.querySelector("button"), article = host.parentElement;
    let now = -1, marked = [], from = null, edges = [], opened = [], timer = 0, reveal = false, aside = false, large = false, touch = null, guess = false, known = -1, playing = 0, low = 0, high = it.count - 1;
    // Of one section, from its first step to the one before the next section's; a jump out of it opens the whole page.
    const nth = data.sections.findIndex(([, , anchor]) => anchor === section);
    if (nth >= 0) [low, high] = [data.sections[nth][0], Math.max(data.sections[nth][0], (data.sections[nth + 1] || [it.count])[0] - 1)];
    const says = h("p", { class: "lbp-live", "aria-live": "polite" });
    const notice = h("p", { class: "lbp-notice", hidden: true });
    const count = h("output", "lbp-count");
    const slider = h("input", { type: "range", min: low + 1, max: high + 1, step: 1, "aria-label": words.step, oninput: () => go(slider.value - 1) });
    const where = h("div", "lbp-where"), stack = h("div", "lbp-stack"), speaker = h("div", { class: "lbp-aside", hidden: true });
    const tools = {}, acts = {}, keys = [];
    const tool = (name, key, act) => {
      const label = words[name], word = words["w" + name[0].toUpperCase() + name.slice(1)];
      keys.push([key, label]);
      acts[{ "←": "ArrowLeft", "→": "ArrowRight" }[key] || key] = act;
      return (tools[name] = h("button", { type: "button", class: "lbp-" + name, "aria-label": label, title: `${label} (${key})`, onclick: act }, icon(name), word && h("span", {}, word)));
    };
    const bar = h("div", { class: "lbp-bar", role: "group", "aria-label": words.step },
      tool("first", "Home", () => go(low, true)), tool("back", "←", () => go(it.beside(now, -1))),
      tool("forward", "→", forward), tool("over", "o", over), tool("into", "i", () => go(now + 1)),
      tool("out", "u", out), tool("change", "c", change), tool("play", "p", play), tool("last", "End", () => go(high, true)));
    const speed = h("select", { class: "lbp-speed", "aria-label": words.speed, onchange: () => { if (playing) { play(); play(); } } },
      ...[0.5, 1, 2, 4].map((n) => h("option", { value: n, selected: n === 1 }, `${grouped(n)} ×`)));
    bar.append(speed);
    const more = h("div", { class: "lbp-more", role: "group", "aria-label": words.ways },
      tool("sections", "j", jump), tool("reveal", "r", () => toggle("reveal")), tool("guess", "g", () => toggle("guess")),
      data.notes.length ? tool("speaker", "s", () => toggle("speaker")) : null,
      tool("full", "f", () => full(!large)),
      tool("help", "?", help), tool("close", "Esc", () => close()));
    const panel = h("section", { class: "lbp", "aria-label": words.player }, h("div", "lbp-top", bar, slider, count, more), notice,
      h("div", { class: "lbp-body", role: "group", "aria-label": words.after, tabindex: 0 }, where, stack, speaker), says);

    /* -- moving */

    function go(k, jumped) {
      if (jumped && (k < low || k > high)) whole();
      else if (k > high && high < it.count - 1 && now === high) {
        whole(); // the next press goes on
        return tell(words.ends);
      }
      const to = Math.max(low, Math.min(high, Number(k)));
      if (to === now) return tell(to ? words.isLast : words.isFirst);
      notice.hidden = true;
      show(to);
      clearTimeout(timer);
      if (jumped) address(to, true); // a jump is a place to come back to; single steps replace it when they pause
      else timer = setTimeout(() => address(to, false), 250);
    }
    function whole() {
      [low, high] = [0, it.count - 1];
      [slider.min, slider.max] = [1, it.count];
    }
    function forward() {
      if (covered(now)) { known = now; show(now); } else go(it.beside(now, 1));
    }
    function change() {
      const to = it.news.find((k) => k > now);
      if (to === undefined) tell(words.unchanged); else go(to);
    }
    function play() { // a step each so often, until the end or until the reader does something else
      clearInterval(playing);
      playing = playing ? 0 : setInterval(() => (now >= high ? play() : forward()), 1000 / speed.value);
      tools.play.setAttribute("aria-pressed", !!playing);
    }
    function run(e) { // a click on a line's number: on to the next time that it runs
      const a = e.target.closest("a.lb-n");
      if (!a || e.ctrlKey || e.metaKey || e.shiftKey) return;
      e.preventDefault();
      e.stopPropagation(); // the theme would go to the line's own address
      const ran = (k) => { const [first, last] = it.line(k), f = it.frame(k); for (let n = first; n <= Math.min(last, first + 50); n++) if (it.id(f, n) === a.id) return true; return false; };
      let k = now + 1;
      while (k < it.count && !ran(k)) k++;
      if (k === it.count) { k = 0; while (k < now && !ran(k)) k++; if (!ran(k)) return tell(words.never); }
      go(k, true);
    }
    const covered = (k) => guess && known !== k && (it.line(k)[2] >= 0 || it.shown.has(k));
    function over() {
      let k = now + 1;
      while (k < it.count && it.depth(k) > it.depth(now)) k++;
      go(k);
    }
    function out() {
      let k = now + 1;
      while (k < it.count && it.depth(now) && it.depth(k) >= it.depth(now)) k++;
      if (!it.depth(now)) k = (data.sections.find(([at]) => at > now) || [it.count - 1])[0];
      go(k);
    }
    function address(k, push) {
      const url = new URL(location.href);
      if (k === null) url.searchParams.delete("step"); else url.searchParams.set("step", k + 1);
      if (/^#(.+-)?L\d+$/.test(url.hash)) url.hash = "";
      try {
        if (url.href !== location.href) history[push ? "pushState" : "replaceState"](history.state, "", url);
      } catch { /* a page that may not change its address still steps */ }
    }
    function tell(text) { notice.textContent = says.textContent = text; notice.hidden = false; }

    /* -- drawing a step */

    function show(k) {
      const hasty = now >= 0 && Math.abs(k - now) > 1;
      now = k;
      const [first, last, claim] = it.line(k), frames = it.stack(k), f = it.frame(k), id = it.id(f, first), changes = [];
      slider.value = k + 1;
      count.textContent = say("of", { n: grouped(k - low + 1), all: grouped(high - low + 1) });
      slider.setAttribute("aria-valuetext", say("at", { n: k + 1, all: it.count, place: it.named(f, first) }));
      let target = mark(f, first, last, frames);
      // A call's own listing may stand far from the line that called: the page stays, and its lines are shown here.
      // In full screen there is nothing else to see: the page goes to its lines.
      if (!large && target && from && Math.abs(target.getBoundingClientRect().top - from.getBoundingClientRect().top) > innerHeight * 0.6) target = null;
      if (reveal) hide();
      const hidden = covered(k);
      article.classList.toggle("lb-guess", hidden);
      const code = row(id) ? row(id).nextElementSibling.textContent.trim() : "", place = it.named(f, first);
      const parts = [h("p", "lbp-line", h("span", {}, place), h("small", {}, it.section(k)[1]))];
      let spoken = place[0].toUpperCase() + place.slice(1) + (code ? `: ${code}.` : ".");
      const note = code ? [] : told(id);
      if (note.length) spoken = note.map((n) => n.textContent.trim()).join(" ").slice(0, 400);
      for (const [at, text] of data.remarks) if (at === k) {
        parts.push(dim(text));
        if (!spoken.includes(text)) spoken += " " + text;
      }
      for (const [turn, all] of it.turns(k)) if (all > 1) parts.push(h("p", "lbp-turn", say("turn", { n: grouped(turn), all: grouped(all) })));
      if (!target) parts.push(source(f, first, last));
      if (claim >= 0) {
        const [verdict, caption, sides] = data.claims[claim];
        const word = words[verdict], sign = SIGNS[verdict] ?? "○";
        if (hidden) parts.push(h("p", "lbp-claim", caption));
        else parts.push(h("p", "lbp-claim lb-" + verdict, `${verdict === "holds" ? sign : `${sign} ${word}:`} ${caption} `, sides ? h("small", {}, sides) : null));
        if (!hidden) spoken += ` ${say("claim", { verdict: word, caption })}`;
      }
      if (hidden) {
        parts.push(h("p", {}, h("button", { type: "button", class: "lbp-see", onclick: forward }, words.see)));
        spoken += ` ${words.see}`;
      }
      for (const [at, text] of data.errors) if (at === k) { parts.push(h("p", "lbp-claim lb-fails", "✗ " + text)); spoken += ` ${say("error", { text })}`; }
      where.replaceChildren(...parts);
      stack.replaceChildren(...frames.slice(0, 8).map(([f, line], i) => call(f, line, i, k, changes)),
        frames.length > 8 ? dim(say("calls", { n: frames.length - 8 })) : "");
      if (!hidden) where.append(...onAll(k), ...memory(frames, k, changes));
      if (changes.length && !hidden) spoken += ` ${say("changed", { values: changes.slice(0, 6).join("; ") })}`;
      if (frames.length > 1) spoken += ` ${say("inside", { name: data.frames[frames[0][0]][0] })}`;
      says.textContent = spoken;
      if (aside) prompt();
      const see = target || note[0] || from;
      if (see) keep(see, hasty);
    }
    function call(f, line, i, k, changes) {
      const [name, , , given] = data.frames[f], rows = [];
      for (const [nth, list] of it.vars[f] || []) {
        const found = it.at(list, k);
        if (!found) continue;
        if (found.changed) changes.push(`${data.names[nth]} = ${data.texts[found.text].slice(0, 120)}`);
        const text = found.changed && covered(k) ? "?" : data.texts[found.text];
        const seen = found.old && h("small", {}, ` ${it.seen(found.step)}`);
        rows.push([found.step, h("div", [found.changed && "lbp-new", found.old && "lbp-old", it.asked.has(nth) && "lbp-asked"].filter(Boolean).join(" ") || null, h("dt", {}, data.names[nth]),
          h("dd", {}, text, seen, found.changed ? h("span", "lbp-said", ` ${words.new}`) : null)), it.asked.has(nth)]);
      }
      rows.sort((a, b) => b[2] - a[2]); // what was asked for first, and each as it came
      const most = 60, fresh = rows.length > most ? [...rows].sort((a, b) => b[0] - a[0]).slice(0, most) : rows;
      const args = given.flatMap(([arg, text], n) => [n ? ", " : "", h("i", {}, arg), " = " + data.texts[text]]);
      return h("div", "lbp-call" + (i ? "" : " lbp-inner"),
        h("p", "lbp-name", h("b", {}, name), "(", ...args, ")", i ? h("small", {}, ` ${it.named(f, line)}`) : null),
        fresh.length ? h("dl", {}, ...fresh.map((r) => r[1])) : null,
        rows.length > most ? dim(say("older", { n: rows.length - most })) : null);
    }
    function source(f, first, last) { // of a helper that is listed on another page, or far from here
      const listed = [];
      for (let n = first - 3; n <= first + 3; n++) { const a = row(it.id(f, n)); if (a) listed.push([n, a.nextElementSibling.textContent]); }
      const whole = listed.length && listed[listed.length - 1][0] - listed[0][0] === listed.length - 1;
      const found = data.code.find(([file, from, lines]) => file === data.frames[f][4] && from <= first && first < from + lines.length)
        || (whole && [0, listed[0][0], listed.map(([, text]) => text)]);
      if (!found) return "";
      const [, from, lines] = found, start = Math.max(0, Math.min(first - from - 3, lines.length - 7)), some = lines.slice(start, start + 7);
      const indent = Math.min(...some.filter((text) => text.trim()).map((text) => text.search(/\S/)));
      return h("div", "lbp-code", ...some.map((text, i) => {
        const n = from + start + i, now = first <= n && n <= last;
        return h("p", { class: now && "lb-now", "aria-current": now && "step" }, h("small", {}, n), h("code", {}, text.slice(indent) || " "));
      }));
    }
    function prompt() {
      const begun = it.section(now)[0], note = data.notes.filter(([at]) => begun <= at && at <= now).pop();
      speaker.replaceChildren(h("small", {}, words.note), h("p", {}, note ? note[1] : words.nothing));
    }

    /* -- marks on the page */

    function unmark() {
      for (const node of marked) { node.classList.remove("lb-now"); node.removeAttribute("aria-current"); }
      if (from) from.classList.remove("lb-from");
      marked = [];
      from = null;
    }
    function mark(f, first, last, frames) {
      unmark();
      for (let n = first; n <= Math.min(last, first + 400); n++) {
        const a = row(it.id(f, n));
        if (a) marked.push(a, a.nextElementSibling);
      }
      if (!marked.length) marked = told(it.id(f, first)).filter((n) => !n.matches(".lb-shelf"));
      for (const node of marked) node.classList.add("lb-now");
      if (marked[0]) marked[0].setAttribute("aria-current", "step");
      if (frames.length > 1) { // where the innermost call on this page came from
        const caller = frames.slice(1).map(([f, line]) => row(it.id(f, line))).find((a) => a);
        if (caller) { from = caller.nextElementSibling; from.classList.add("lb-from"); }
      }
      const folds = []; // a claim's, and the aside's around it
      for (let at = marked[0]; (at = at && at.parentElement.closest("details")); ) folds.push(at);
      for (const fold of opened) if (!folds.includes(fold)) { fold.open = false; fold.classList.remove("lb-showing"); }
      opened = folds.filter((fold) => opened.includes(fold) || !fold.open);
      for (const fold of folds) { fold.open = true; fold.classList.add("lb-showing"); }
      return marked[0] && marked[0].classList.contains("lb-n") ? marked[1] : marked[0];
    }
    function keep(node, hasty) { // in view, and still where it is already
      const box = node.getBoundingClientRect(), dock = panel.getBoundingClientRect();
      const head = doc.querySelector(".md-header"), top = (head ? Math.max(0, head.getBoundingClientRect().bottom) : 0) + 16;
      const end = (dock.left > innerWidth / 3 ? innerHeight : dock.top) - 16;
      if (box.top >= top && Math.min(box.bottom, box.top + 120) <= end) return;
      scrollBy({ top: box.top - top - (end - top) * 0.25, behavior: hasty || calm() ? "instant" : "smooth" });
    }
    function hide() {
      for (const [node, name] of edges) node.classList.remove(name);
      const a = row(it.down(now)), plain = doc.getElementById(it.down(now));
      let block = a ? a.closest(".lb-code") : plain && plain.closest(".lb-at");
      edges = [];
      if (!block) return;
      if (a) {
        const code = a.nextElementSibling, beside = code.nextElementSibling;
        const end = beside && beside.classList.contains("lb-v") ? beside : code;
        edges.push([end, "lb-edge-line"]);
        if (!end.nextElementSibling) block = below(block).filter((n) => !/^H\d$/.test(n.nodeName)).pop() || block;
      } else block = below(block).pop() || block;
      edges.push([block, "lb-edge"]);
      // What is around it ends the page as far as it is told: a list of claims, an aside.
      for (let at = block; (at = at.parentElement.closest(".lb-claims, details.lb-aside")); ) {
        edges.push([at, "lb-edge"]);
        for (const claim of at.querySelectorAll(":scope > summary > .lb-proof"))
          if (+claim.dataset.line > +a.textContent) edges.push([claim, "lb-coming"]);
      }
      for (const [node, name] of edges) node.classList.add(name);
    }

    /* -- ways to look */

    function toggle(what) {
      if (what === "guess") { guess = !guess; known = now; if (!guess) show(now); }
      else if (what === "speaker") { aside = !aside; speaker.hidden = !aside; prompt(); }
      else { reveal = !reveal; article.classList.toggle("lb-reveal", reveal); if (reveal && now >= 0) hide(); }
      tools[what].setAttribute("aria-pressed", { speaker: aside, guess, reveal }[what]);
    }
    function full(on) {
      root.classList.toggle("lb-full", (large = on));
      tools.full.setAttribute("aria-pressed", on);
      if (on && root.requestFullscreen) root.requestFullscreen().catch(() => {});
      if (!on && doc.fullscreenElement) doc.exitFullscreen().catch(() => {});
    }
    function dialog(label, ...children) {
      const it = h("dialog", { class: "lbp-dialog", "aria-label": label }, ...children);
      it.addEventListener("close", () => { it.remove(); tools.forward.focus({ preventScroll: true }); });
      panel.append(it);
      it.showModal();
      return it;
    }
    function jump() {
      const list = h("ul", {}, ...data.sections.map(([at, name, anchor]) =>
        h("li", { "data-for": `${name} ${anchor}`.toLowerCase() }, h("button", { type: "button", onclick: () => { box.close(); go(at, true); } }, name, h("small", {}, say("nth", { n: at + 1 }))))));
      const none = h("p", { hidden: true }, words.missing);
      const field = h("input", { "aria-label": words.name, placeholder: words.jump,
        oninput() { let some = false; for (const li of list.children) some = !(li.hidden = !li.dataset.for.includes(field.value.trim().toLowerCase())) || some; none.hidden = some; },
        onkeydown(e) { if (e.key === "Enter") { e.preventDefault(); const li = [...list.children].find((l) => !l.hidden); if (li) li.firstChild.click(); } } });
      const box = dialog(words.sections, field, list, none);
      field.focus();
    }
    function help() {
      dialog(words.keys, h("h2", {}, words.keys), h("dl", {}, ...keys.map(([key, text]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)))),
        h("p", {}, words.touch),
        h("form", { method: "dialog" }, h("button", { type: "submit" }, words.close)));
    }

    /* -- keys and touch */

    acts.Escape = () => (large ? full(false) : close());
    function key(e) {
      const at = e.composedPath()[0], box = panel.querySelector("dialog[open]"), letter = e.key.length < 2;
      if (e.ctrlKey || e.altKey || e.metaKey || e.isComposing || e.defaultPrevented) return;
      if (at instanceof Element && (at.closest(FIELDS) || at.isContentEditable || (!letter && at.closest(SCROLLS)))) return;
      if (box || (letter && "fsnp,.".includes(e.key))) e.stopPropagation(); // the theme's own: search, and leave for the next page
      if (box) return e.key === "?" && box.close();
      if (!Object.hasOwn(acts, e.key) || (e.shiftKey && !letter)) return;
      e.preventDefault();
      acts[e.key]();
    }
    function down(e) {
      const t = e.touches[0], on = e.target.closest && e.target.closest(`${FIELDS}, ${SCROLLS}, pre, table, dialog`);
      touch = e.touches.length === 1 && !on && t.clientX > 24 && t.clientX < innerWidth - 24 ? [t.clientX, t.clientY, e.timeStamp] : null;
    }
    function up(e) {
      if (!touch) return;
      const t = e.changedTouches[0], dx = t.clientX - touch[0], dy = t.clientY - touch[1];
      if (Math.abs(dx) > 50 && Math.abs(dx) > 2 * Math.abs(dy) && e.timeStamp - touch[2] < 800) go(now + (dx < 0 ? 1 : -1));
      touch = null;
    }
    const left = () => { if (!doc.fullscreenElement && large) full(false); };
    const ends = new AbortController(), { signal } = ends;
    doc.addEventListener("keydown", key, { signal, capture: true });
    article.addEventListener("click", run, { signal, capture: true });
    for (const [name, what] of [["touchstart", down], ["touchend", up], ["fullscreenchange", left]]) doc.addEventListener(name, what, { signal, passive: true });

    /* -- beginning and end */

    function close(gone) {
      clearTimeout(timer);
      clearInterval(playing);
      ends.abort();
      unmark();
      for (const [node, name] of edges) node.classList.remove(name);
      for (const fold of opened) fold.open = false;
      article.classList.remove("lb-reveal", "lb-guess");
      sized.disconnect();
      full(false);
      root.classList.remove("lb-stepping", "lb-full");
      root.style.removeProperty("--lbp-height");
      panel.remove();
      ended();
      button.setAttribute("aria-expanded", "false");
      if (!gone) { address(null, false); button.focus({ preventScroll: true }); }
    }
    function visit(text, fresh) {
      const n = Number(text), k = Math.max(0, Math.min(it.count - 1, Number.isFinite(n) ? Math.round(n) - 1 : 0));
      notice.hidden = true;
      if (k < low || k > high) whole();
      if (k !== now) show(k);
      if (text !== null && String(k + 1) !== text) {
        tell(say("none", { step: text.slice(0, 20), n: k + 1, all: it.count }));
        address(k, false);
      } else if (fresh) address(k, false);
    }
    const sized = new ResizeObserver(() => { // the window, too, or its type, has another size now
      root.style.setProperty("--lbp-height", panel.offsetHeight + "px");
      const see = marked[0] || from;
      if (see) keep(see, true);
    });
    doc.body.append(panel);
    sized.observe(panel);
    root.classList.add("lb-stepping");
    button.setAttribute("aria-expanded", "true");
    tools.forward.focus({ preventScroll: true });
    toggle("reveal"); // what is to come is grey
    if (wanted === null) { show(low); address(low, true); } else visit(wanted, false);
    return { close, visit, host };
  }
  return open;
};
