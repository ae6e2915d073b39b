// The path that SGD with momentum takes down a bowl that is steep along one axis and flat along the other.
window.litbookPicture = (() => {
  const CURVES = [1, 10], STEPS = 30, SHOWN = [1, 2, 3, 5, 10, 20, 30];
  function walked({ rate, momentum }) {
    const places = [[1, 1]], sums = [0, 0];
    for (let step = 0; step < STEPS; step++) places.push(places[step].map((p, i) => p - rate * (sums[i] = momentum * sums[i] + CURVES[i] * p)));
    return places;
  }
  return {
    size: [360, 250],
    values(place) {
      const places = walked(place);
      return SHOWN.map((step) => places[step].map((p) => Number(p.toFixed(6))));
    },

    draw(stage, { place, make }) {
      const places = walked(place), x = (p) => 180 + 128 * Math.max(-1.4, Math.min(1.4, p)), y = (p) => 125 - 94 * Math.max(-1.3, Math.min(1.3, p));
      const levels = Array.from({ length: 7 }, (_, half) => {
        const level = 5.5 / 3 ** half, [wide, high] = CURVES.map((curve) => Math.sqrt((2 * level) / curve));
        const rx = 128 * wide, ry = 94 * high;
        return make("path", { d: `M${180 - rx} 125a${rx} ${ry} 0 1 0 ${2 * rx} 0a${rx} ${ry} 0 1 0 ${-2 * rx} 0`, style: "fill:none;stroke:currentColor;stroke-width:.5;opacity:.6" });
      });
      const last = places[STEPS], left = Math.hypot(...last), gone = left > 1.5;
      stage.replaceChildren(make("svg", { viewBox: "0 0 360 250", "aria-hidden": "true", style: "font-size:14px;width:100%" }, ...levels,
        make("path", { d: places.map(([a, b], i) => `${i ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join(""), style: `fill:none;stroke:var(${gone ? "--lb-fail" : "--lb-accent"});stroke-width:1.5` }),
        ...places.map(([a, b]) => make("circle", { cx: x(a), cy: y(b), r: 3.2, style: `fill:var(${gone ? "--lb-fail" : "--lb-accent"})` })),
        make("path", { d: "M172 125h16M180 117v16", style: "stroke:currentColor;stroke-width:2" }), make("text", { x: x(1) + 10, y: y(1) - 4, style: "fill:currentColor" }, "start")));
      const away = Number(left.toPrecision(2));
      return [gone ? "It has left the bowl" : `After ${STEPS} steps ${away} away from the lowest point`, `Rate ${place.rate}, momentum ${place.momentum}: ${gone ? `after ${STEPS} steps it is ${away} away from the lowest point` : `it began ${Number(Math.SQRT2.toPrecision(3))} away`}.`];
    },
  };
})();
