// A float as its bits: each is a button. The bits of a format are the first of 32.
window.litbookPicture = (() => {
  // format -> bits of exponent and fraction, largest value; of E4M3 the highest exponent holds numbers, too
  const FORMATS = { float32: [8, 23, 3.4028234663852886e38], float16: [5, 10, 65504], bfloat16: [8, 7, 3.3895313892515355e38], "float8 E4M3": [4, 3, 448], "float8 E5M2": [5, 2, 57344] };

  function decode(pattern, format) { // pattern: a whole number of 1 + exponent + fraction bits
    const [wide, deep] = FORMATS[format], ones = 2 ** wide - 1, bias = 2 ** (wide - 1) - 1;
    const fraction = pattern % 2 ** deep, exponent = Math.floor(pattern / 2 ** deep) % 2 ** wide;
    const sign = pattern >= 2 ** (wide + deep) ? -1 : 1;
    if (format === "float8 E4M3" ? exponent === ones && fraction === 7 : exponent === ones && fraction) return NaN;
    if (format !== "float8 E4M3" && exponent === ones) return sign * Infinity;
    return sign * (exponent ? 2 ** (exponent - bias) * (1 + fraction / 2 ** deep) : 2 ** (1 - bias) * (fraction / 2 ** deep));
  }
  function encode(value, format) { // the nearest pattern, of two equally near the even one; beyond the largest infinite; of E4M3, which has no infinity, the largest
    const [wide, deep, most] = FORMATS[format], bias = 2 ** (wide - 1) - 1, sign = value < 0 || Object.is(value, -0) ? 2 ** (wide + deep) : 0;
    const beyond = format === "float8 E4M3" ? 2 ** (wide + deep) - 2 : (2 ** wide - 1) * 2 ** deep;
    if (Number.isNaN(value)) return 2 ** (wide + deep) - 1;
    const size = Math.min(Math.abs(value), 2 * most);
    const exponent = size ? Math.max(1 - bias, Math.floor(Math.log2(size)) - 1) : 1 - bias;
    const power = size >= 2 ** (exponent + 2) ? exponent + 2 : size >= 2 ** (exponent + 1) ? exponent + 1 : exponent;
    const steps = size / 2 ** (power - deep), low = Math.floor(steps), rest = steps - low;
    const whole = low + (rest > 0.5 || (rest === 0.5 && low % 2) ? 1 : 0); // 2^deep of them begin the next power
    return sign + Math.min(beyond, Math.max(0, power + bias - 1) * 2 ** deep + whole);
  }
  const top = (bits, format) => Math.floor(bits / 2 ** (31 - FORMATS[format][0] - FORMATS[format][1]));
  const left = (pattern, format) => pattern * 2 ** (31 - FORMATS[format][0] - FORMATS[format][1]);

  const values = ({ dtype: format, bits }) => {
    const pattern = top(bits, format), value = decode(pattern, format);
    if (!Number.isFinite(value)) return { value };
    const size = 2 ** (FORMATS[format][0] + FORMATS[format][1]), next = decode((pattern % size) + 1, format);
    const rounded = Math.abs(value) < 1e37 ? decode(encode(value + 1, format), format) : value;
    return { value, next: Number.isFinite(next) ? Math.abs(next) : null, plus: rounded };
  };
  const said = (number) => (Number.isFinite(number) ? String(Number(number.toPrecision(9))) : String(number));

  let last, text; // the place that was drawn, and what was said of it
  return {
    high: 292,
    values,
    draw(stage, { place: { dtype: format, bits }, values: { value, next, plus }, move, make }) {
      const before = last && last.dtype !== format && last.bits === bits && decode(top(bits, last.dtype), last.dtype);
      last = { dtype: format, bits };
      if (typeof before === "number" && left(encode(before, format), format) !== bits) { // another format keeps the number, not its bits
        move({ bits: left(encode(before, format), format) });
        return text;
      }
      const focused = document.activeElement && document.activeElement.dataset.key, [wide, deep, most] = FORMATS[format], count = 1 + wide + deep, pattern = top(bits, format);
      const hue = (i) => (i ? (i <= wide ? "--lb-exponent" : "--lb-fraction") : "--lb-sign");
      const bit = (i) => {
        const on = Math.floor(pattern / 2 ** (count - 1 - i)) % 2;
        const part = i ? (i <= wide ? "exponent" : "fraction") : "sign";
        return make("button", { type: "button", "data-key": "bit" + i, "aria-pressed": on ? "true" : "false", "aria-label": `${part}, bit ${i + 1} of ${count}`,
          style: `flex:0 0 auto;width:1.5rem;min-height:1.6rem;padding:0;margin:1px;border-radius:2px;border-color:var(${hue(i)});color:inherit;background:${on ? `color-mix(in srgb, var(${hue(i)}) 40%, transparent)` : "none"}`,
          onclick: () => move({ bits: left(pattern + (on ? -1 : 1) * 2 ** (count - 1 - i), format) }) }, String(on));
      };
      const field = make("input", { "data-key": "number", "aria-label": "a number", value: said(value), size: 12, inputmode: "decimal",
        onchange: () => { const typed = Number(field.value.replace(",", ".")); if (field.value.trim() && !Number.isNaN(typed)) move({ bits: left(encode(typed, format), format) }); } });
      const add = (text, to) => make("button", { type: "button", "data-key": text, disabled: !Number.isFinite(to), onclick: () => move({ bits: left(encode(to, format), format) }) }, text);
      const line = make("svg", { viewBox: "0 0 360 64", "aria-hidden": "true", style: "font-size:14px;margin-top:.5rem;width:100%;max-width:24rem" });
      if (next != null) { // three neighbours to either side, and where a step of one would end
        const size = 2 ** (wide + deep), mine = pattern % size, gap = next - Math.abs(value);
        const x = (number) => 180 + ((number - value) / gap) * 48, sign = Math.sign(value || 1);
        line.append(make("path", { d: "M0 30H360", style: "stroke:var(--lb-soft)" }));
        for (let step = -3; step <= 3; step++) if (mine + step >= 0) {
          const there = sign * decode(mine + step, format), at = x(there);
          if (!Number.isFinite(there) || at < 0 || at > 360) continue;
          line.append(make("path", { d: `M${at} 22v16`, style: `stroke:${step ? "currentColor" : "var(--lb-accent)"};stroke-width:${step ? 1.5 : 4}` }));
          if (!step || Math.abs(step) === 1) line.append(make("text", { x: at, y: step ? 56 : 14, "text-anchor": "middle", style: "fill:currentColor" }, said(there)));
        }
        if (x(value + 1) <= 360) line.append(make("circle", { cx: x(value + 1), cy: 30, r: 5, style: "fill:none;stroke:var(--lb-fail);stroke-width:2" }), make("text", { x: Math.max(x(value + 1), 192 + 4.5 * said(value).length), y: 20, "text-anchor": "middle", style: "fill:var(--lb-fail)" }, "+1"));
      }
      stage.replaceChildren(
        make("div", { style: "display:flex;flex-wrap:wrap;align-items:center;margin-bottom:.3rem" }, ...Array.from({ length: count }, (_, i) => bit(i)), make("b", { style: "margin-left:.6rem;white-space:nowrap" }, `= ${said(value)}`)),
        make("div", { style: "display:flex;flex-wrap:wrap;gap:0 .9rem;font-size:.74rem;margin-bottom:.5rem" }, ...[["sign", 1], ["exponent", wide], ["fraction", deep]].map(([part, n]) => make("span", {}, make("span", { class: "lb-key", style: `--hue:var(--lb-${part})` }), `${part}, ${n} bit${n > 1 ? "s" : ""}`))),
        make("div", { style: "display:flex;flex-wrap:wrap;gap:.5rem;align-items:center" }, field, add("+1", plus), add("next", next == null || value < 0 ? NaN : next)), line);
      const again = [...stage.querySelectorAll("[data-key]")].find((node) => node.dataset.key === focused);
      if (again) again.focus({ preventScroll: true });
      if (!Number.isFinite(value)) return (text = [`${said(value)} in ${format}`]);
      const after = next == null ? "the largest there is" : `the next number away from zero is ${said((value < 0 ? -1 : 1) * next)}, ${said(next - Math.abs(value))} away`;
      return (text = [`${said(value)} + 1 = ${said(plus)} in ${format}`, `${after[0].toUpperCase()}${after.slice(1)}.`]);
    },
  };
})();
