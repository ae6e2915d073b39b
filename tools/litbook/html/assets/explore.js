// Pictures with sliders: puts the marks and texts of another point in place of these. The page has them all as
// data; nothing is computed here. Without this script the author's point is shown.
(() => {
  for (const figure of document.querySelectorAll(".lb-explore[data-grid]")) {
    const { kind, names, places, points, across } = JSON.parse(figure.dataset.grid);
    const all = (selector) => [...figure.querySelectorAll(selector)];
    const fields = all(".lb-sliders input, .lb-sliders select"), outputs = all(".lb-slider");
    const bars = all(".lb-bar"), lines = all(".lb-line"), dots = all(".lb-dot"), texts = all(".lb-text");
    const limits = all(".lb-limit"), roof = figure.querySelector(".lb-roof");
    const total = figure.querySelector(".lb-total"), gap = figure.querySelector(".lb-gap");
    const n = names.length;
    const point = (at) => points[at.reduce((index, place, i) => index * places[i].length + place, 0)];
    const percent = (mark) => `${mark / 10}%`;

    function draw() {
      const at = fields.map((field) => Number(field.value)), here = point(at), missing = typeof here === "string";
      if (kind === "curve") {
        lines.forEach((line, name) => {
          let path = "", apart = true;
          across.forEach((x, column) => {
            const there = point([column, ...at.slice(1)]), is = typeof there !== "string";
            if (is) path += `${apart ? "M" : "L"}${x} ${1000 - there[name]}`;
            apart = !is;
          });
          line.setAttribute("d", path);
        });
        dots.forEach((dot, name) => {
          dot.hidden = missing;
          dot.style.setProperty("--x", percent(across[at[0]]));
          if (!missing) dot.style.setProperty("--y", percent(here[name]));
        });
        if (roof && !missing) roof.style.setProperty("--y", percent(here[2 * n]));
      } else {
        bars.forEach((bar, name) => bar.style.setProperty("--w", missing ? "0%" : percent(here[name])));
        if (limits.length) for (const track of all(".lb-track")) // torn off where the bar is longer than its frame
          track.classList.toggle("lb-torn", [...track.querySelectorAll(".lb-bar")].reduce((sum, bar) => sum + parseFloat(bar.style.getPropertyValue("--w")), 0) > 99.95);
        for (const limit of limits) if (!missing) limit.style.setProperty("--x", percent(here[2 * n]));
      }
      texts.forEach((text, name) => { text.textContent = missing ? "–" : here[n + name]; });
      if (total) total.textContent = missing ? "–" : here[2 * n + 1];
      gap.hidden = !missing;
      gap.textContent = missing ? here : "";
      const said = missing ? here : names.map((name, i) => `${name} ${here[n + i]}`.trim()).join(", ");
      fields.forEach((field, i) => {
        const output = outputs[i].querySelector("output"), place = places[i][at[i]];
        if (output) output.textContent = place;
        if (field.type === "range") field.setAttribute("aria-valuetext", `${place}: ${said}`);
      });
    }

    for (const field of fields) field.addEventListener("input", draw);
    draw(); // a browser that comes back may have kept other places
  }
})();
