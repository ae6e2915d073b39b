// Memory over a training step, operation by operation, as it was measured: areas of each kind, and where one looks.
window.litbookPicture = (() => {
  const CODE = { forward: "loss = F.mse_loss(model(x), y)", backward: "loss.backward()", update: "optimizer.step()" };
  const KINDS = ["parameters", "Adam's moments", "gradients", "activations", "temporaries"];
  const HUES = ["--lb-accent", "--lb-fail", "--lb-tick", "--lb-hot", "--lb-soft"];
  const WIDE = 300, HIGH = 150, TOP = 36, LEFT = 54, TIME = "time_in_the_step";
  const sum = (held) => held.reduce((a, b) => a + b, 0);
  const kib = (bytes) => `${Math.round(bytes / 1024)} KiB`;

  return {
    size: [360, 292],
    draw(stage, { place, values: [phase, ...held], at, move, make }) {
      const moments = [];
      for (let moment = 1, there; (there = at({ [TIME]: moment })); moment++) moments.push(there);
      const sums = moments.map(([, ...all]) => sum(all)), most = Math.max(...sums), peak = sums.indexOf(most);
      const x = (moment) => LEFT + (moment / moments.length) * WIDE, y = (bytes) => TOP + HIGH * (1 - bytes / most);
      const area = (kind) => { // from the sum of those before it to the sum with it, in steps
        const tops = moments.map(([, ...all]) => y(sum(all.slice(0, kind + 1)))), floors = moments.map(([, ...all]) => y(sum(all.slice(0, kind))));
        const up = tops.map((top, i) => `${i ? "L" : "M"}${x(i)} ${top}L${x(i + 1)} ${top}`).join("");
        return `${up}${floors.map((floor, i) => `L${x(i + 1)} ${floor}L${x(i)} ${floor}`).reverse().join("")}Z`;
      };
      const text = (left, top, words, more) => make("text", { x: left, y: top, style: "fill:currentColor", ...more }, words);
      const phases = Object.keys(CODE).map((name) => {
        const from = moments.findIndex(([its]) => its === name), bold = name === phase;
        return [make("path", { d: `M${x(from)} ${TOP}v${HIGH}`, style: "stroke:var(--lb-soft);stroke-dasharray:4 3" }), text(x(from) + 3, TOP - (from ? 8 : 23), name, { "font-weight": bold ? 700 : 400 })];
      });
      const axes = [0, 0.5, 1].map((part) => [make("path", { d: `M${LEFT - 4} ${y(part * most)}h4`, style: "stroke:currentColor" }), text(LEFT - 7, y(part * most) + 5, part ? kib(part * most).replace(" KiB", "") : "0", { "text-anchor": "end" })]);
      axes.push([text(0, 13, "KiB"), ...[1, moments.length].map((n) => text(x(n - 0.5), TOP + HIGH + 19, String(n), { "text-anchor": n > 1 ? "end" : "middle" })), text(LEFT + WIDE / 2, TOP + HIGH + 36, "time in the step, in operations", { "text-anchor": "middle" })]);
      const look = x(place[TIME] - 0.5), left = x(peak) > LEFT + WIDE - 120 ? "end" : "start";
      const keys = KINDS.flatMap((kind, i) => [make("rect", { x: 2 + (i % 2) * 172, y: TOP + HIGH + 50 + 19 * (i >> 1), width: 11, height: 11, style: `fill:color-mix(in srgb, var(${HUES[i]}) 62%, transparent);stroke:var(${HUES[i]})` }),
        text(18 + (i % 2) * 172, TOP + HIGH + 60 + 19 * (i >> 1), `${kind.replace("Adam's ", "")} ${kib(held[i])}`, { style: "fill:currentColor;font-size:13.5px" })]);
      const drawn = make("g", { style: "pointer-events:none" },
        ...KINDS.map((_, kind) => make("path", { d: area(kind), style: `fill:color-mix(in srgb, var(${HUES[kind]}) 62%, transparent);stroke:var(${HUES[kind]});stroke-width:.7` })),
        ...axes.flat(), ...phases.flat(), make("circle", { cx: x(peak + 0.5), cy: TOP, r: 4, style: "fill:none;stroke:var(--lb-fail);stroke-width:2" }),
        ...keys, text(x(peak + 0.5) + (left === "end" ? -8 : 8), TOP + 14, `peak ${kib(most)}`, { "text-anchor": left, style: "fill:currentColor;font-weight:700;paint-order:stroke;stroke:var(--lb-paper);stroke-width:4px" }),
        make("path", { d: `M${look} ${TOP - 4}v${HIGH + 8}`, style: "stroke:currentColor;stroke-width:2" }));
      // The element that a finger holds stays; what is in it is drawn anew.
      const svg = stage.querySelector(".scrubbed") || make("svg", { class: "scrubbed", viewBox: "0 0 360 292", "aria-hidden": "true", style: "font-size:14px;touch-action:pan-y;cursor:ew-resize;width:100%" });
      svg.replaceChildren(drawn);
      svg.onpointerdown = svg.onpointermove = (event) => {
        const box = svg.getBoundingClientRect(), moment = Math.floor(((((event.clientX - box.left) / box.width) * 360 - LEFT) / WIDE) * moments.length);
        if (event.buttons) move({ [TIME]: Math.max(1, Math.min(moments.length, moment + 1)) });
      };
      if (!svg.isConnected) stage.replaceChildren(svg);
      return [`The peak is in the ${moments[peak][0]}${moments[peak][0] === "update" ? "" : " pass"}: ${kib(most)}`, `Operation ${place[TIME]} of ${moments.length}, in ${phase} (${CODE[phase]}): ${kib(sum(held))}, batch ${place.batch}.`];
    },
  };
})();
