/* What the search answers. Words that the book declares stand for others, and a word that nowhere occurs for those like
   it; the small words of a question are left out, a whole word counts more than a beginning, and pages that have every
   word come first. */
(() => {
  "use strict";
  const [SETUP, , QUERY] = [0, 1, 2], NEAR = 4, WHOLE = 8;
  // What a question is made of beside its subject, in the language of the theme's own list and ours.
  const SMALL = new Set("a an and any are as at be by can could did do does each for from get give has have how i if in into is it its long many me mean means much my need of on one or should so than that the their them there these they this to use used vs was we what when where which who why will with work works would you your".split(" "));
  let setup, ask, words, known;
  self.__searching = async (its, load, asking) => {
    [setup, ask] = [its, asking];
    await load(setup.config.worker);
    await load(setup.config.index);
    const docs = self.__litbook.flatMap(([at, its]) => its.map(([there, title, lines, names = "", more]) => ({
      location: at + there, title, text: lines.replace(/.+/g, "<p>$&</p>") + (names && `<p><code>${names}</code></p>`), ...more,
    })));
    words = [...new Set(docs.flatMap((it) => split(`${it.title} ${it.text}`.replace(/<[^>]*>|&\w+;/g, " "))))];
    known = new Set(words);
    await ask(SETUP, { ...setup, docs });
  };

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
    let most = word.length < 5 ? 0 : word.length < 8 ? 1 : 2, found = new Set();
    for (const other of words) {
      if (other[0] !== word[0] && other[1] !== word[1] || other.length < word.length - most) continue;
      const [steps, end] = distance(word, other);
      if (steps > most || steps === most && found.size >= NEAR) continue;
      if (steps < most) found = new Set();
      most = steps;
      found.add(other.slice(0, end));
    }
    return found.size ? [...found] : [word];
  }

  // The glossary's line that the query names, also by its abbreviation, the one of most words; a plural counts.
  const bare = (text) => split(text).flatMap((it) => it.split("-")).map((it) => it.length > 3 ? it.replace(/s$/, "") : it);
  function term(query) {
    const said = ` ${bare(query).join(" ")} `, named = (self.__litbookTerms ?? []).map(([location, word, text]) => ({ location, title: word, text, names: [word, /^(\p{Lu}{2,}):/u.exec(text)?.[1] ?? word].map((it) => bare(it).join(" ")) }));
    const long = ({ names }) => Math.max(...names.map((it) => (said.includes(` ${it} `) ? it.split(" ").length : 0)));
    const found = named.filter(long).sort((a, b) => long(b) - long(a))[0];
    return found && [{ location: found.location, title: found.title, text: found.text, score: 1, terms: {} }];
  }

  const page = ([best]) => best.location.split("#")[0];

  self.__answer = async (query) => {
    if (/["*~^:]|(^|\s)[+-]/.test(query)) return ask(QUERY, query);  // who writes so knows what to find
    const all = split(query), text = ` ${all.join(" ")} `, large = all.filter((word) => !SMALL.has(word));
    const tried = (large.length ? large : all).map((word) => ({ word, own: meant(word), others: [] }));
    const mended = ` ${tried.map((it) => it.own[0]).join(" ")} `;
    for (const [phrase, others] of Object.entries(setup.config.synonyms)) {
      const said = split(phrase);
      if (![text, mended].some((it) => it.includes(` ${said.join(" ")} `))) continue;
      const beside = tried.filter((it) => said.includes(it.word) || said.includes(it.own[0]));
      for (const it of beside.length ? beside : tried) it.others.push(...split(others));
    }
    // A word as it stands, or its plural, counts more than one that begins with it.
    const terms = new Set(tried.flatMap((it) => [...it.own, ...it.others]));
    const whole = new Set(tried.flatMap(({ word, own, others }) => [word, own[0], `${own[0]}s`, ...others].filter((it) => known.has(it) && (others.includes(it) || it.startsWith(word) || word.startsWith(it)))));
    const some = await ask(QUERY, [...[...whole].map((it) => `${it}^${WHOLE}`), ...[...terms].filter((it) => it.length > 2 || !known.has(it))].join(" "));
    // First the pages that have all words, then those that have some.
    const every = tried.length > 1 && tried.every((it) => it.own.length === 1 && !it.others.length);
    const first = every ? (await ask(QUERY, tried.map((it) => `+${known.has(it.word) ? it.word : it.own[0]}`).join(" "))).data.items : [];
    const there = new Set(first.map(page));
    const line = [term(query)].filter(Boolean);
    const result = { ...some, data: { ...some.data, items: [...line, ...first, ...some.data.items.filter((it) => !there.has(page(it)))] } };
    for (const item of result.data.items.flat()) {  // what is missing is a word that was asked, what is found is in the text
      const found = Object.keys(item.terms).filter((term) => item.terms[term]);
      const missing = tried.filter(({ own, others }) => own.some((it) => it in item.terms) && ![...own, ...others].some((it) => found.includes(it)));
      item.terms = Object.fromEntries([...found.map((it) => [it, true]), ...missing.map(({ word }) => [word, false])]);
    }
    return result;
  };
})();
