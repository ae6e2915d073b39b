// A pipeline's schedule: a row for each rank, in it a box for each step that it works in, and how many microbatches it keeps.
window.litbookPicture = (() => {
  const LEFT = 50, WIDE = 256, TOP = 22, HIGH = 200, HUES = { F: "--lb-accent", B: "--lb-tick" };
  return {
    size: [360, 268],
    draw(stage, { place, at, make }) {
      const moments = [];
      for (let time = 1, there; (there = at({ time })) && there.length; time++) moments.push(there);
      const idle = moments[0][0], all = Array.from({ length: place.stages }, (_, rank) =>
        moments.flatMap((now, i) => (now[rank + 1] ? [[i + 1, now[rank + 1][0], now[rank + 1].slice(1)]] : [])));
      const steps = moments.length, until = Math.min(place.time, steps), drawn = [], most = [];
      const text = (x, y, words, more) => make("text", { x, y, style: "fill:currentColor", ...more }, words);
      const wide = WIDE / steps, high = HIGH / all.length;
      all.forEach((passes, rank) => {
        const middle = TOP + (rank + 0.5) * high + 5;
        let kept = 0, now = 0;
        most[rank] = 0;
        drawn.push(make("rect", { x: LEFT, y: TOP + rank * high + 1.5, width: WIDE, height: high - 3, style: "fill:color-mix(in srgb, currentColor 7%, transparent)" }));
        for (const [step, kind, batch] of passes) {
          kept += kind === "F" ? 1 : -1;
          most[rank] = Math.max(most[rank], kept);
          const done = step <= until;
          if (done) now = kept;
          drawn.push(make("rect", { x: LEFT + (step - 1) * wide + 0.5, y: TOP + rank * high + 1.5, width: wide - 1, height: high - 3, style: `fill:color-mix(in srgb, var(${HUES[kind]}) ${done ? 45 : 14}%, transparent)` }));
          if (wide > 8 * batch.length + 2) drawn.push(text(LEFT + (step - 0.5) * wide, middle, batch, { "text-anchor": "middle", style: `fill:currentColor;font-size:13px;opacity:${done ? 1 : 0.6}` }));
        }
        drawn.push(text(0, middle, `rank ${rank}`), text(358, middle, `${now} kept`, { "text-anchor": "end" }));
      });
      const look = LEFT + until * wide;
      drawn.push(make("path", { d: `M${look} ${TOP - 6}v${HIGH + 10}`, style: "stroke:var(--lb-fail);stroke-width:2.5" }));
      drawn.push(text(Math.min(Math.max(look, LEFT + 20), LEFT + WIDE - 24), 13, `step ${until}`, { "text-anchor": "middle" }));
      [["F", "forward", LEFT], ["B", "backward", LEFT + 84]].forEach(([kind, words, x]) => drawn.push(
        make("rect", { x, y: TOP + HIGH + 18, width: 13, height: 13, style: `fill:color-mix(in srgb, var(${HUES[kind]}) 45%, transparent)` }), text(x + 18, TOP + HIGH + 29, words)));
      drawn.push(text(LEFT + 180, TOP + HIGH + 29, "gray: waiting"));
      stage.replaceChildren(make("svg", { viewBox: "0 0 360 268", "aria-hidden": "true", style: "font-size:14px;width:100%" }, ...drawn));
      return [`${Number(idle.toPrecision(3))} % of the time is lost. Rank 0 keeps up to ${most[0]} microbatch${most[0] === 1 ? "" : "es"}`,
        `${all.length} ranks need ${steps} steps; each works in ${2 * place.microbatches} of them and waits in ${steps - 2 * place.microbatches}.`];
    },
  };
})();
