/* The search's worker: in front of Material's own, which it loads together with the index for the first words that are
   asked for. Words that the book declares stand for others, and a word that nowhere occurs for those like it. In a
   folder, where browsers have no workers, it runs in a frame: see folder.js. */
(() => {
  "use strict";
  const [SETUP, READY, QUERY, RESULT] = [0, 1, 2, 3], NEAR = 4;
  const framed = typeof importScripts == "undefined", here = framed ? document.currentScript.src : location.href;
  const send = framed ? (message) => parent.postMessage(message, "*") : postMessage.bind(self);
  let setup, ready, words, passing = false, turn = Promise.resolve();

  const load = (path) => new Promise((done, failed) => {
    const url = new URL(path, here).href;
    if (!framed) return done(importScripts(url));
    document.head.append(Object.assign(document.createElement("script"), { src: url, onload: done, onerror: failed }));
  });

  // A message for Material's worker, and its answer.
  const ask = (type, data) => new Promise((done) => {
    self.postMessage = done;
    passing = true;
    dispatchEvent(new MessageEvent("message", { data: { type, data } }));
    passing = false;
  });

  async function prepare() {
    await load(setup.config.worker);
    await load(setup.config.index);
    const docs = self.__litbook.flatMap(([at, its]) => its.map(([there, title, lines, names = "", more]) => ({
      location: at + there, title, text: lines.replace(/.+/g, "<p>$&</p>") + (names && `<p><code>${names}</code></p>`), ...more,
    })));
    words = [...new Set(docs.flatMap((it) => split(`${it.title} ${it.text}`.replace(/<[^>]*>|&\w+;/g, " "))))];
    await ask(SETUP, { ...setup, docs });
  }

  const split = (text) => text.toLowerCase().split(/[^\p{L}\p{N}_.]+/u).map((it) => it.replace(/^\.+|\.+$/g, "")).filter(Boolean);

  // How many letters to change, add, leave out or swap until `word` begins like `other`, and where that beginning ends.
  function distance(word, other) {
    let before, last = [...Array(other.length + 1).keys()];
    for (let i = 1; i <= word.length; i++) {
      const row = [i];
      for (let j = 1; j <= other.length; j++) {
        const swapped = i > 1 && j > 1 && word[i - 1] === other[j - 2] && word[i - 2] === other[j - 1];
        row.push(Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (word[i - 1] !== other[j - 1]), swapped ? before[j - 2] + 1 : 99));
      }
      [before, last] = [last, row];
    }
    const least = Math.min(...last);
    return [least, last.lastIndexOf(least)];
  }

  // What stands for a word: itself where anything begins so, without the s of a plural; names of which it is a part; or
  // else the nearest that occur.
  function meant(word) {
    const one = word.length > 3 ? word.replace(/s$/, "") : word;
    if (words.some((it) => it.startsWith(one))) return [one];
    const inside = words.filter((it) => it.includes(`_${one}`));
    if (inside.length) return inside;
    let most = word.length < 4 ? 0 : word.length < 8 ? 1 : 2, found = new Set([word]);
    for (const other of words) {
      if (other[0] !== word[0] && other[1] !== word[1] || other.length < word.length - most) continue;
      const [steps, end] = distance(word, other);
      if (steps > most || steps === most && found.size >= NEAR) continue;
      if (steps < most) found = new Set();
      most = steps;
      found.add(other.slice(0, end));
    }
    return [...found];
  }

  async function answer(query) {
    await (ready ??= prepare());
    if (/["*~^:]|(^|\s)[+-]/.test(query)) return send(await ask(QUERY, query));  // who writes so knows what to find
    const asked = split(query), text = ` ${asked.join(" ")} `;
    const tried = asked.map((word) => ({ word, own: meant(word), others: [] }));
    for (const [phrase, others] of Object.entries(setup.config.synonyms)) {
      const said = split(phrase);
      if (!text.includes(` ${said.join(" ")} `)) continue;
      for (const it of tried) if (said.includes(it.word)) it.others.push(...split(others));
    }
    const result = await ask(QUERY, [...new Set(tried.flatMap((it) => [...it.own, ...it.others]))].join(" "));
    for (const item of result.data.items.flat()) {  // what is missing is a word that was asked, what is found is in the text
      const found = Object.keys(item.terms).filter((term) => item.terms[term]);
      const missing = tried.filter(({ own, others }) => own.some((it) => it in item.terms) && ![...own, ...others].some((it) => found.includes(it)));
      item.terms = Object.fromEntries([...found.map((it) => [it, true]), ...missing.map(({ word }) => [word, false])]);
    }
    send(result);
  }

  addEventListener("message", (event) => {
    if (passing) return;
    event.stopImmediatePropagation();
    const { type, data } = event.data;
    if (type === SETUP) {
      setup = data;
      send({ type: READY });
    } else if (data.trim()) {
      turn = turn.then(() => answer(data)).catch(() => send({ type: RESULT, data: { items: [] } }));
    } else send({ type: RESULT, data: { items: [] } });
  });
})();
