// Which outputs of a row of layers are in memory at each moment of a step that is checkpointed in segments.
window.litbookPicture = (() => {
  const WIDE = 330, TOP = 108, HIGH = 96, LEFT = 26;
  const SAYS = { forward: "forward pass", again: "forward once more", backward: "backward pass" };
  return {
    size: [360, 230],
    draw(stage, { place, values, at, make }) {
      const moments = [];
      for (let moment = 1, there; (there = at({ moment })); moment++) moments.push(there);
      const most = Math.max(...moments.map((it) => it.kept.length)), scale = HIGH / 17, step = WIDE / moments.length;
      const text = (x, y, words, more) => make("text", { x, y, style: "fill:currentColor", ...more }, words);
      const x = (layer) => LEFT + 10 + layer * 19.6, hue = values.phase === "again" ? "--lb-hot" : "--lb-accent";
      const dots = Array.from({ length: 17 }, (_, layer) => {
        const kept = values.kept.includes(layer), start = layer % place.segment === 0 && layer < 16;
        return [
          make("circle", { cx: x(layer), cy: 50, r: layer === values.layer ? 9 : 6.5, style: `fill:${kept ? `var(${start ? "--lb-accent" : hue})` : "none"};stroke:currentColor;stroke-width:${layer === values.layer ? 2.5 : 0.8}` }),
          (layer % 4 === 0) && text(x(layer), 82, layer ? String(layer) : "input", { "text-anchor": "middle" }),
        ];
      });
      const bars = moments.map((it, i) => make("rect", { x: LEFT + i * step, y: TOP + HIGH - it.kept.length * scale, width: step, height: it.kept.length * scale, style: `fill:color-mix(in srgb, var(${it.phase === "again" ? "--lb-hot" : "--lb-accent"}) 55%, transparent)` }));
      const look = LEFT + (place.moment - 0.5) * step;
      stage.replaceChildren(make("svg", { viewBox: "0 0 360 230", "aria-hidden": "true", style: "font-size:14px;width:100%" },
        text(2, 18, `${SAYS[values.phase]}, layer ${values.layer}`, { "font-weight": 700 }), ...dots.flat(), ...bars,
        make("path", { d: `M${LEFT} ${TOP}V${TOP + HIGH}H${LEFT + WIDE}`, style: "fill:none;stroke:currentColor" }), make("path", { d: `M${look} ${TOP - 6}V${TOP + HIGH}`, style: "stroke:currentColor;stroke-width:2" }),
        text(LEFT - 4, TOP + HIGH - 17 * scale + 6, "17", { "text-anchor": "end" }), text(LEFT - 4, TOP + HIGH, "0", { "text-anchor": "end" }), text(LEFT + WIDE, TOP + HIGH + 20, "time", { "text-anchor": "end" })));
      const outputs = (n) => `${n} output${n === 1 ? "" : "s"}`;
      return [`${outputs(values.kept.length)} in memory; at the peak ${outputs(most)}`, `Segments of ${place.segment}, moment ${place.moment} of ${moments.length}. Layers computed again so far: ${values.again}.`];
    },
  };
})();
