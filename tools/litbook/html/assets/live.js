// Pictures that an author's script draws: loads it when the picture comes near, holds it to every point that the run
// kept, and lets it draw in the place of the still picture. Without this script, or where it differs, that one stays.
(() => {
  const plain = (value) => (typeof value === "number" && !Number.isFinite(value) ? String(value).toLowerCase().replace("inity", "") : value);
  function same(a, b) { // what the script says, and what the run gave
    a = plain(a);
    if (typeof a === "number" && typeof b === "number") return a === b || Math.abs(a - b) <= 1e-6 * Math.max(Math.abs(a), Math.abs(b));
    if (!a || !b || typeof a !== "object" || typeof b !== "object") return a === b;
    const names = Object.keys(b);
    return Array.isArray(a) === Array.isArray(b) && Object.keys(a).length === names.length && names.every((name) => same(a[name], b[name]));
  }
  const drawn = ["svg", "g", "rect", "text", "tspan", "path", "line", "circle"];
  function make(name, attributes, ...children) { // an element; what is called `onclick` and the like is listened to
    const node = drawn.includes(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (value !== false && value != null) node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child != null && child !== false));
    return node;
  }
  function start(figure) {
    const stage = figure.querySelector(".lb-stage"), says = figure.querySelector(".lb-says"), verdict = figure.querySelector(".lb-verdict"), outputs = {}, fields = {};
    const fail = (text) => { says.textContent = text; figure.classList.add("lb-failed"); };
    const script = document.createElement("script");
    script.src = figure.dataset.script;
    script.onerror = () => fail(says.dataset.lost);
    script.onload = () => {
      const picture = window.litbookPicture, { sliders, points, at: begin } = picture.run, kept = new Map(points.map((one) => [one[0].join(), one]));
      delete window.litbookPicture;
      const place = (at) => Object.fromEntries(sliders.map(({ name, places, span }, i) => [name, span ? span[0] + span[2] * at[i] : places[at[i]]]));
      const values = (at) => (picture.values ? picture.values(place(at)) : kept.get(at.join())[1]);
      if (picture.values) for (const [there, value, why] of points) {
        const gives = picture.values(place(there));
        if (why ? typeof gives !== "string" : !same(gives, value)) return fail(says.dataset.differs.replace("{place}", JSON.stringify(place(there))));
      }
      let here = [...begin];
      sliders.forEach(({ span }, i) => {
        const field = span ? null : figure.querySelector(`[id="${figure.id}-${i}"]`);
        if (!field) return;
        fields[i] = field;
        outputs[i] = field.parentElement.querySelector("output");
        here[i] = Number(field.value); // a browser that comes back may have kept another place
        field.addEventListener("input", () => { here[i] = Number(field.value); draw(); });
      });
      const changed = (changes) => sliders.map(({ name, places, span }, i) =>
        !(name in changes) ? here[i] : span ? (changes[name] - span[0]) / span[2] : places.indexOf(changes[name]));
      function at(changes) { // what is at another place; nothing where there is none
        const there = changed(changes);
        return there.some((i) => i < 0) ? undefined : values(there);
      }
      function move(changes) {
        here = changed(changes).map((to, i) => (to < 0 ? here[i] : to));
        for (const i in fields) fields[i].value = here[i];
        draw();
      }
      function draw() {
        const drawing = picture.draw(stage, { place: place(here), values: values(here), at, move, make }) || "";
        const [first, rest = ""] = Array.isArray(drawing) ? drawing : [drawing], text = `${first} ${rest}`.trim(); // the verdict, and more
        verdict.textContent = first;
        says.textContent = rest;
        for (const i in fields) {
          if (outputs[i]) outputs[i].textContent = sliders[i].labels[here[i]];
          if (fields[i].type === "range") fields[i].setAttribute("aria-valuetext", `${sliders[i].labels[here[i]]}: ${text}`);
        }
      }
      if (!picture.size && !picture.high) stage.style.minHeight = `${stage.offsetHeight}px`; // what is below stays where it is
      stage.replaceChildren();
      figure.classList.add("lb-begun");
      draw();
    };
    document.head.append(script);
  }
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting) {
      near.unobserve(target);
      start(target);
    }
  }, { rootMargin: "300px" });
  for (const figure of document.querySelectorAll(".lb-live[data-script]")) near.observe(figure);
})();
