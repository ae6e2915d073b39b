/* The player: steps through what a page's program did, on the page itself. Its data is made by html/player.py
   and loaded when a reader opens it, with the panel (stepping.js) and what it draws of memory. Without this file the
   page is complete. */
(() => {
  "use strict";
  const doc = document, known = new Map();
  const ICONS = { forward: "M8 5l9 7-9 7z" };
  const beside = doc.currentScript.src; // what is needed only once the player is opened lies there, too
  let player = null, open, lang, words;

  const h = (name, props, ...children) => {
    const node = doc.createElement(name);
    for (const [key, value] of Object.entries(typeof props === "string" ? { class: props } : props || {})) {
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (value !== false && value != null) node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.filter((c) => c != null && c !== false));
    return node;
  };
  const icon = (name) => {
    const [svg, path] = ["svg", "path"].map((it) => doc.createElementNS("http://www.w3.org/2000/svg", it));
    path.setAttribute("d", ICONS[name]);
    svg.setAttribute("viewBox", "0 0 24 24");
    svg.setAttribute("aria-hidden", "true");
    svg.append(path);
    return svg;
  };
  const asked = () => new URL(location.href).searchParams.get("step");
  const ran = (src) => new Promise((done, failed) => {
    const script = h("script", { src, onload: () => { script.remove(); done(); }, onerror: () => { script.remove(); failed(); } });
    doc.head.append(script);
  });
  async function load(host) { // what each rank did: one script where the page ran on none
    const { steps, page, ranks } = host.dataset, first = new URL(steps, location.href).href, found = [];
    if (known.has(first)) return known.get(first);
    if (!open) await Promise.all(["memory.js", "ranks.js", "stepping.js"].map((name) => ran(new URL(name, beside).href)));
    open = open || window.litbookStepping({ h, icon, words, lang, ended: () => { player = null; }, ICONS });
    for (let n = 0; n < (+ranks || 1); n++) {
      await ran(n ? first.replace(/\.player\.js$/, `.rank${n}$&`) : first);
      found.push(window.litbookSteps[page]);
      delete window.litbookSteps[page];
    }
    known.set(first, found);
    return found;
  }

  /* ---- the page */

  function start(host, wanted, section) {
    const button = host.querySelector("button"), message = host.querySelector("p");
    message.hidden = true;
    button.setAttribute("aria-busy", "true");
    const settled = () => button.removeAttribute("aria-busy");
    load(host).then((ranks) => {
      settled();
      if (host.isConnected && !player) player = open(host, ranks, +host.dataset.rank || 0, wanted, section);
    }, () => {
      settled();
      message.textContent = words.lost;
      message.hidden = false;
    });
  }
  function ready() {
    if (player && !player.host.isConnected) player.close(true); // instant navigation has left its page
    const host = doc.querySelector(".lb-player");
    if (!host || host.firstChild) return;
    ({ lang, player: words } = JSON.parse(doc.getElementById("lb-words").dataset.words));
    const ranks = Array.from({ length: +host.dataset.ranks || 0 }, (_, n) => h("option", { value: n }, words.rank.replace("{n}", n)));
    host.append(...[h("button", { type: "button", "aria-expanded": "false", onclick: () => (player ? player.close() : start(host, null)) }, icon("forward"), words.through),
      ranks.length > 0 && h("select", { "aria-label": words.ranks, onchange: (event) => {
        host.dataset.rank = event.target.value;
        if (!player) return;
        const step = asked();
        player.close(true);
        start(host, step);
      } }, ...ranks),
      h("p", { role: "alert", hidden: true })].filter(Boolean));
    host.hidden = false;
    for (const id of (host.dataset.from || "").split(" ")) { // at each section's heading: its steps alone
      const title = doc.getElementById(id);
      if (!title || !/^H[2-6]$/.test(title.nodeName)) continue;
      const label = words.here.replace("{name}", title.textContent.trim());
      title.append(h("button", { type: "button", class: "lb-here", "aria-label": label, title: label, onclick: () => {
        if (player) player.close(true);
        start(host, null, id);
      } }, icon("forward")));
    }
    if (asked() !== null) start(host, asked());
  }
  addEventListener("popstate", () => {
    const host = doc.querySelector(".lb-player"), step = asked();
    if (player && (!host || player.host !== host || step === null)) player.close(true);
    else if (player) player.visit(step, false);
    else if (host && host.firstChild && step !== null) start(host, step);
  });
  if (window.document$) window.document$.subscribe(ready); // Material: every page; from a folder it says nothing
  if (doc.readyState === "loading") doc.addEventListener("DOMContentLoaded", ready);
  else ready();
})();
