// A field below each question whose answer can be typed. What was typed stays in this browser, by the page that asks it.
{
  const boxes = [...document.querySelectorAll(".lb-ask[data-answer]")], right = new Set();
  const pageOf = (box) => new URL(box.dataset.page ?? "", location.href.split(/[?#]/)[0]).pathname, pages = new Set(boxes.map(pageOf));
  const { lang, answers: words } = JSON.parse(document.getElementById("lb-words")?.dataset.words ?? "{}");
  const say = (name, its) => words[name].replace(/{(\w+)}/g, (_, it) => its[it]);
  const TIMES = { __proto__: null, ns: 1e-9, us: 1e-6, µs: 1e-6, ms: 1e-3, s: 1, min: 60, minute: 60, h: 3600, hour: 3600, day: 86400, week: 604800, year: 31557600 };
  const MANY = { __proto__: null, k: 1e3, m: 1e6, g: 1e9, b: 1e9, t: 1e12, thousand: 1e3, million: 1e6, billion: 1e9, trillion: 1e12 };
  const N = "[-+]?(?:\\d+\\.?\\d*|\\.\\d+)(?:e[-+]?\\d+)?", FORMULA = RegExp(`^(${N}(?:\\s*[*×·/^x]\\s*${N})*)\\s*(\\D*)$`, "i");
  const plain = (it) => it.trim().toLowerCase().replace(/^torch\.|["'`]/g, ""), far = (it) => Math.abs(Math.log(Math.abs(it)));
  const stored = (name) => { try { return Object(JSON.parse(localStorage.getItem(name))); } catch { return {}; } };
  const store = (name, what) => { try { localStorage.setItem(name, JSON.stringify(what)); } catch {} };
  const kept = Object.fromEntries([...pages].map((page) => [page, stored(`litbook ${page}`)]));
  const keep = () => pages.forEach((page) => store(`litbook ${page}`, kept[page]));

  // "GiB" is [2 ** 30, "b"]. Where no bytes are asked for, "70B" is 70 billion.
  const unit = (text, bytes) => {
    const [name, per = ""] = text.toLowerCase().replace(/bytes?/g, "b").replace(/seconds?/g, "s").split(/(\/.*)/s);
    const one = name.replace(/s$/, ""), found = /^([kmgtpe]?)(i?)(b|flop|wh?|bit)$/.exec(one), time = TIMES[name] ?? TIMES[one];
    if (name === "%") return [0.01, ""];
    if (found && (bytes || name !== "b")) return [(found[2] ? 1024 : 1000) ** " kmgtpe".indexOf(found[1] || " "), found[3] + per];
    const [, many, word] = /^(?:(\w+illion|thousand|[kmgbt])(?!\S))?\s*(.*)/s.exec(one);
    return time ? [time, `s${per}`] : [MANY[many] ?? 1, word + per];
  };

  // "1,024", "3 × 10^8", "1/64", "2 GiB" as [number, unit].
  const read = (text) => {
    const bare = text.replace(/^(about|[~≈=$\s])+|\.?\s*$/gi, "").replace(/[−–]/g, "-").replace(/\*\*/g, "^").replace(/^(-?0),/, "$1.")
      .replace(/(\d)[\s_'’,](?=\d{3}(?!\d))/g, "$1").replace(/(\d),(?=\d)/, "$1.");
    const [, formula = "nothing", word] = FORMULA.exec(bare) ?? [];
    const value = formula.split(/\s*([*×·/x])\s*/i).reduce((value, it, i, all) => {
      const power = it.split("^").map(Number).reduceRight((above, base) => base ** above);
      return i % 2 ? value : all[i - 1] === "/" ? value / power : value * power;
    }, 1);
    if (!isFinite(value)) throw words.unread;
    return [value, word.trim()];
  };

  // What is wrong with one part of an answer; "" for nothing.
  const wrong = (text, answer, asked, shown, within) => {
    if (answer.trim) return plain(text) === plain(answer) ? "" : words.notIt;
    const [number, word] = read(text), [size, base] = unit(asked, true), bytes = /^b|\/b/.test(base), [many, its] = unit(word, bytes);
    if (its && its !== base && `${its}/s` !== base && [its, base].some((it) => /^(b|flop|wh?|bit|s)(\/|$)/.test(it))) throw say(asked ? "unit" : "plain", { unit: asked, word });
    const given = word ? [many / size] : [1, 1 / size, ...shown.map((it) => unit(it, bytes)[0] / size)];
    const [ratio] = given.map((it) => it * number / answer).sort((a, b) => far(a) - far(b)), by = Math.max(ratio, 1 / ratio);
    if (!(answer || number) || (ratio > 0 && by <= 1 + within)) return "";
    return ratio > 0 ? say(ratio < 1 ? "small" : "large", { n: by.toLocaleString(lang, { maximumSignificantDigits: 3 }) }) : words.sign;
  };

  const judge = ({ answer, unit = "", within = 0.01, wrong: mistakes = "[]" }, text, shown, said) => {
    const answers = JSON.parse(answer), bare = text.replace(/\p{Cf}/gu, "").trim().replace(/^[[({]|,?[\])}]$/g, ""), count = answers.length;
    if (!bare) throw words.first;
    const known = count < 2 ? said[JSON.parse(mistakes).findIndex((value) => !wrong(bare, value, unit, shown, +within))] : "";
    const ways = [/;|\band\b|,\s/, /,/, /[\s,;]+/].map((by) => bare.split(by).map((it) => (count < 2 ? it : it.replace(/[()[\]{}]/g, ""))).filter((it) => it.trim()));
    const parts = count < 2 ? [bare] : ways.find((it) => it.length === count);
    if (!parts) throw say("many", { n: count });
    const last = /[^\d\s]*$/.exec(bare)[0]; // "40, 80 GB" is GB twice
    const found = parts.map((it, i) => wrong(/\d\s*$/.test(it) ? `${it} ${last}` : it, answers[i], unit, shown, +within));
    if (known && found[0]) return `${found[0]}. ${known.replace(/\.$/, "")}`;
    return found.some(Boolean) && found.map((it, i) => (count < 2 ? it : say("part", { n: i + 1, verdict: it || words.right }))).join(", ");
  };

  const line = document.createElement("p"), tell = () => {
    line.lastChild.hidden = !Object.values(kept).some((it) => Object.keys(it)[0]);
    line.firstChild.textContent = say("done", { n: right.size, all: boxes.length });
  };
  // What the contents of the lecture say of each part: how many of its questions are answered.
  const parts = "litbook answered", there = () => stored(parts);
  const note = () => store(parts, { ...there(), ...Object.fromEntries([...pages].map((page) => {
    const its = boxes.filter((box) => pageOf(box) === page);
    return [page, [its.filter((box) => right.has(box)).length, its.length]];
  })) });
  for (const link of document.querySelectorAll(".lb-parttitle a")) {
    const [n, all] = there()[link.pathname] ?? [];
    if (n) link.parentNode.append(Object.assign(document.createElement("small"), { textContent: `${n === all ? "✓ " : ""}${say("done", { n, all })}` }));
    if (n && n === all) link.closest(".lb-part").classList.add("lb-done");
  }
  line.className = "lb-progress";
  line.innerHTML = "<span></span> <button></button>";
  line.lastChild.before(`${words?.kept} `);
  line.lastChild.textContent = words?.forget;
  line.lastChild.onclick = () => { pages.forEach((page) => (kept[page] = {})); keep(); right.clear(); note(); location.reload(); };

  for (const box of boxes) {
    const id = box.querySelector(".lb-asktitle + *").textContent, mine = kept[pageOf(box)], reply = box.querySelector(".lb-answer"), form = document.createElement("form");
    form.innerHTML = '<label><span></span> <input autocomplete="off" spellcheck="false" maxlength="99"></label> <button></button> <output></output>';
    const [label, button, said] = form.children, [name, field] = label.children;
    const mistakes = [...reply.querySelectorAll(".lb-mistakes li")].map((it) => it.lastChild.textContent.replace(/^: /, ""));
    const shown = [...reply.querySelector("b").textContent.matchAll(/\d ([^\s\d,\])]+)/g)].map((it) => it[1]);
    form.onsubmit = (e) => {
      e?.preventDefault();
      try {
        const why = judge(box.dataset, field.value, shown, mistakes);
        right[why ? "delete" : "add"](box);
        mine[id] = field.value;
        said.textContent = why ? say("isWrong", { why: why[0].toUpperCase() + why.slice(1) }) : words.isRight;
        form.className = why ? "lb-wrong" : "lb-right";
        if (e) { keep(); tell(); note(); }
        if (e && !why) { reply.open = true; said.append(` ${line.firstChild.textContent}`); }
      } catch (problem) { said.textContent = problem; form.className = ""; }
    };
    label.prepend(words.yours);
    button.textContent = words.check;
    if (box.dataset.unit) name.textContent = say("in", { unit: box.dataset.unit });
    reply.before(form);
    if (mine[id]) { field.value = mine[id]; form.onsubmit(); }
  }
  // At the foot: what a script adds above the text would move it.
  const list = document.querySelector("article .lb-questions");
  if (boxes[0]) { list ? list.append(line) : document.querySelector("article .lb-foot").before(line); tell(); }
}
