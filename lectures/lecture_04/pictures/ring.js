// An all-reduce round a ring of four ranks: what each holds after each step, and what has just come in from where.
window.litbookPicture = (() => {
  const RANKS = 4, PART = 74, GAP = 16, HIGH = 34, TOP = 26;
  return {
    size: [360, 208],
    draw(stage, { place: { step }, values: held, at, make }) {
      const before = step ? at({ step: step - 1 }) : held, sums = at({ step: 6 })[0], drawn = [];
      const x = (rank) => 2 + rank * (PART + GAP), y = (part) => TOP + part * (HIGH + 6);
      held.forEach((parts, rank) => {
        drawn.push(make("text", { x: x(rank) + PART / 2, y: 15, "text-anchor": "middle", style: "fill:currentColor;font-weight:700" }, `rank ${rank}`));
        parts.forEach((value, part) => {
          const whole = value === sums[part], came = value !== before[rank][part], hue = came ? "--lb-hot" : whole ? "--lb-tick" : "--lb-soft";
          drawn.push(make("rect", { x: x(rank), y: y(part), width: PART, height: HIGH, rx: 4, style: `fill:color-mix(in srgb, var(${hue}) ${came ? 35 : whole ? 28 : 8}%, transparent);stroke:var(${hue});stroke-width:${came ? 2.5 : 1}` }));
          drawn.push(make("text", { x: x(rank) + PART - 7, y: y(part) + 23, "text-anchor": "end", style: "fill:currentColor;font-family:var(--md-code-font-family)" }, String(value)));
          if (whole) drawn.push(make("text", { x: x(rank) + 5, y: y(part) + 23, style: "fill:var(--lb-tick);font-weight:700" }, "✓"));
          if (!came) return;
          const middle = y(part) + HIGH / 2, gold = "fill:none;stroke:var(--lb-hot);stroke-width:2.5";
          if (rank) drawn.push(make("path", { d: `M${x(rank) - GAP} ${middle}h${GAP - 3}m-6 -5l6 5l-6 5`, style: gold }));
          else drawn.push( // from the last rank, round the outside
            make("path", { d: `M${x(RANKS - 1) + PART} ${middle}h7V${y(RANKS) + 3}H${x(0) + 24}V${y(RANKS) - 4}`, style: `${gold};stroke-width:2;stroke-dasharray:5 4` }));
        });
      });
      stage.replaceChildren(make("svg", { viewBox: "0 0 360 208", "aria-hidden": "true", style: "font-size:15px;width:100%" }, ...drawn));
      const done = held.flat().filter((value, i) => value === sums[i % RANKS]).length;
      if (!step) return ["Before the first step, each rank has its own values", "No part of the sum is complete."];
      return [`${step < 4 ? "Reduce-scatter" : "All-gather"}, step ${step < 4 ? step : step - 3} of 3: what comes in is ${step < 4 ? "added" : "copied"}`, `Each rank has sent ${step} of 6 quarters of the tensor. ${done} of 16 parts are complete.`];
    },
  };
})();
