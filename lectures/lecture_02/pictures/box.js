// A product as a box: each multiplication a cube in it, the two matrices and the sums its faces.
window.litbookPicture = (() => {
  const UNIT = 21, DEEP = [0.5, 0.4], MOST = 8;
  return {
    size: [360, 286],
    values: ({ m, k, n }) => ({ multiplications: m * k * n, additions: m * (k - 1) * n, numbers: m * k + k * n + m * n }),

    draw(stage, { place: { m, k, n }, values, make }) {
      const seen = (x, y, z) => `${(6 + (x + DEEP[0] * z) * UNIT).toFixed(1)} ${(26 + ((1 + DEEP[1]) * MOST - y - DEEP[1] * z) * UNIT).toFixed(1)}`;
      const face = (at, across, along, hue) => {
        const lines = [];
        for (let a = 1; a < across; a++) lines.push(`M${at(a, 0)}L${at(a, along)}`);
        for (let b = 1; b < along; b++) lines.push(`M${at(0, b)}L${at(across, b)}`);
        return [
          make("path", { d: `M${at(0, 0)}L${at(across, 0)}L${at(across, along)}L${at(0, along)}Z`, style: `fill:color-mix(in srgb, var(${hue}) 45%, transparent);stroke:currentColor;stroke-width:1.2` }),
          make("path", { d: lines.join(""), style: "stroke:currentColor;stroke-width:.4;opacity:.7" }),
        ];
      };
      const label = (at, words, more) => {
        const [x, y] = at.split(" ");
        return make("text", { x, y, style: "fill:currentColor;font-weight:700", ...more }, words);
      };
      stage.replaceChildren(make("svg", { viewBox: "0 0 360 286", "aria-hidden": "true", style: "font-size:14px;width:100%" },
        ...face((a, b) => seen(a, b, 0), n, m, "--lb-hot"), ...face((a, b) => seen(a, m, b), n, k, "--lb-tick"), ...face((a, b) => seen(n, a, b), m, k, "--lb-accent"),
        label(seen(n / 2, -0.6, 0), "sums", { "text-anchor": "middle" }), label(seen(n / 2, m + 0.25, k), "right matrix", { "text-anchor": "middle" }), label(seen(n + 0.25, m / 2, k), "left matrix")));
      return [`${values.multiplications} multiplications on ${values.numbers} elements: ${Number((values.multiplications / values.numbers).toPrecision(3))} per element`, `A ${m} × ${k} matrix by a ${k} × ${n} one. The multiplications are the volume, the elements the three faces.`];
    },
  };
})();
