// The napkin calculator. Its formulas, limits and models are made from those of lectures/ when the site is built.
import { CARDS, FORMATS, FORMULAS, LIMITS, MODELS, RECIPES } from "./calculator-data.js";

const DAY = 24 * 60 * 60;

// ------------------------------------------------------------------ numbers as people write them

const COUNTS = { "": 0, k: 3, thousand: 3, m: 6, mn: 6, million: 6, b: 9, bn: 9, g: 9, billion: 9, t: 12, tn: 12, trillion: 12 };
const SUFFIXES = { mfu: { "": 0, "%": -2 }, bytes: { "": 0, b: 0, byte: 0, bytes: 0 }, within: { "": 0, d: 0, day: 0, days: 0 } };
const EXAMPLES = { parameters: "70B", tokens: "15T", devices: "1024", mfu: "0.4", bytes: "16", within: "30", ...numbers(Object.values(MODELS)[0] ?? {}) };
const NUMBER = /^([+\-−]?)(\d+|\d{1,3}(?:[,_ \u00a0\u202f]\d{3})+)?(\.\d*)?(?:e([+\-−]?\d{1,4}))?\s*([a-z]*|%)$/i;
/** A model's numbers as its fields say them. */
function numbers(model) {
  return Object.fromEntries(Object.entries(model).map(([name, it]) => [name, it === true ? "yes" : it === false ? "no" : String(it)]));
}
const quoted = (text) => `“${text.length > 24 ? `${text.slice(0, 24)}…` : text}”`;

/** The number that `text` says, or a sentence on what is wrong with it. */
function read(name, label, text) {
  const { least, most, whole } = LIMITS[name];
  if (!text.trim()) return `Give a number, such as ${EXAMPLES[name]}.`;
  const [, sign, digits = "", fraction = "", power = "0", suffix] = NUMBER.exec(text.trim()) ?? [];
  const ten = suffix?.toLowerCase() ?? "?";
  const suffixes = SUFFIXES[name] ?? COUNTS;
  if (!Object.hasOwn(suffixes, ten) || !(digits || fraction.length > 1)) {
    const comma = /^\d+,\d+\D*$/.test(text.trim()) ? " Decimals take a point." : "";
    return `${quoted(text)} is not a number that this field knows; write it like ${EXAMPLES[name]}.${comma}`;
  }
  const exponent = Number(power.replace("−", "-")) + suffixes[ten];
  const value = Number(`${digits.replace(/\D/g, "") || "0"}${fraction}e${exponent}`) * (sign && sign !== "+" ? -1 : 1);
  if (name === "mfu" && value > most) {
    return `${label} cannot exceed 1: nothing does more than its peak.${value <= 100 ? ` For ${value} percent write ${value / 100}.` : ""}`;
  }
  if (value < least) return `${quoted(text)} is too small: at least ${least}.`;
  if (value > most) return `${quoted(text)} is too large: at most ${words(most)}.`;
  if (whole && !Number.isInteger(value)) return `${quoted(text)} is not a whole number.`;
  return value;
}

// ------------------------------------------------------------------ numbers as people read them

const four = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const digits = (value) => (value && value < 1e-3 ? power(value) : four.format(value));
const power = (value) => value.toExponential(3).replace(/\.?0*e\+?/, "e");
function scaled(value, steps, names) {
  let i = 0;
  while (i < names.length - 1 && value >= steps ** (i + 1)) i += 1;
  const short = value / steps ** i;
  return (short >= 1e6 ? `${power(value)} ${names[0]}` : `${digits(short)} ${names[i]}`).trim();
}
const rate = (value) => scaled(value, 1000, ["FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s", "EFLOP/s"]);
const size = (value) => scaled(value, 1000, ["B", "kB", "MB", "GB", "TB", "PB", "EB"]);
const exact = new Intl.NumberFormat("en");
const words = (value) => (value < 1e6 ? exact.format(value) : scaled(value, 1000, ["", "", "million", "billion", "trillion"]));
function time(value) {
  if (value < 1 / 24 / 60) return `${digits(value * DAY)} seconds`;
  if (value < 1 / 24) return `${digits(value * 24 * 60)} minutes`;
  if (value < 1) return `${digits(value * 24)} hours`;
  return value >= 1e9 ? `${power(value)} days` : `${digits(value)} days`;
}
const years = (value) => (value >= 730 ? `${value >= 3.65e8 ? power(value / 365.25) : digits(value / 365.25)} years; ` : "");

// ------------------------------------------------------------------ the form

const form = document.getElementById("lb-calc");
const fields = Object.fromEntries([...form.elements].filter((it) => it.name).map((it) => [it.name, it]));
const take = document.getElementById("lb-take");
const label = (field) => field.labels[0].textContent.split(",")[0];
const choices = { device: CARDS.map((c) => c.name), format: FORMATS, recipe: [...RECIPES.map((r) => r.key), "own"], model: [...Object.keys(MODELS), "own"], tied: ["no", "yes"], bias: ["no", "yes"], normed: ["no", "yes"] };
const titles = { recipe: [...RECIPES.map((r) => r.name), "a number of my own"], model: [...Object.keys(MODELS), "numbers of my own"] };
// What a choice sets in other fields; whoever changes one of those has made a choice of one's own.
const PRESETS = {
  recipe: Object.fromEntries(RECIPES.map((it) => [it.key, { bytes: String(it.bytes) }])),
  model: Object.fromEntries(Object.entries(MODELS).map(([name, it]) => [name, numbers(it)])),
};
const preset = (of) => PRESETS[of][fields[of].value] ?? {};
const owner = (name) => Object.keys(PRESETS).find((of) => Object.hasOwn(Object.values(PRESETS[of])[0] ?? {}, name));
for (const [name, keys] of Object.entries(choices)) {
  keys.forEach((key, i) => fields[name].add(new Option(titles[name]?.[i] ?? key, key)));
}
for (const field of Object.values(fields)) if (field.tagName === "INPUT") Object.assign(field, { maxLength: 40, spellcheck: false });
const DEFAULTS = { ...Object.fromEntries(Object.values(fields).map((it) => [it.name, it.value])), device: "H100 SXM", format: "bfloat16", recipe: "adamw", model: "Llama-3-70B" };
for (const name of Object.keys(choices)) if (!choices[name].includes(DEFAULTS[name])) [DEFAULTS[name]] = choices[name];
for (const of of Object.keys(PRESETS)) Object.assign(DEFAULTS, PRESETS[of][DEFAULTS[of]]);
const fill = () => Object.keys(PRESETS).forEach((of) => Object.entries(preset(of)).forEach(([name, text]) => (fields[name].value = text)));

function complain(name, text) {
  fields[name].setAttribute("aria-invalid", text ? "true" : "false");
  document.getElementById(`lb-${name}-wrong`).textContent = text;
}

function show(name, value, text, remark) {
  const output = document.getElementById(`lb-out-${name}`);
  if (value === null) delete output.dataset.value;
  else output.dataset.value = String(value);
  output.textContent = text;
  output.nextElementSibling.textContent = remark;
}

function compute() {
  const given = {}, wrong = {};
  for (const name of Object.keys(LIMITS)) {
    const value = read(name, label(fields[name]), fields[name].value);
    if (typeof value === "number") given[name] = value;
    else wrong[name] = value;
    complain(name, wrong[name] ?? "");
  }
  if (!("kv_heads" in wrong) && given.heads % given.kv_heads) {
    wrong.kv_heads = `${fields.kv_heads.value} does not divide ${fields.heads.value}, the heads of queries.`;
  }
  if (!("active" in wrong) && given.active > given.experts) {
    wrong.active = `${fields.active.value} is more than ${fields.experts.value}, the experts in a layer.`;
  }
  for (const name of ["kv_heads", "active"]) complain(name, wrong[name] ?? "");
  const card = CARDS.find((it) => it.name === fields.device.value);
  const peak = card.peaks[fields.format.value];
  Object.assign(given, { peak, memory: card.memory, tied: Number(fields.tied.value === "yes"), bias: Number(fields.bias.value === "yes"), normed: Number(fields.normed.value === "yes") });
  const result = (name, text, remark) => {
    const [needs, formula] = FORMULAS[name];
    if (needs.includes("peak") && peak === null) {
      return show(name, null, "not available", `the ${card.name} promises no rate in ${fields.format.value}`);
    }
    const missing = needs.filter((it) => it in wrong).map((it) => label(fields[it]));
    if (missing.length) return show(name, null, "–", `waits for: ${missing.join(", ")}`);
    const value = formula(given);
    show(name, value, text(value), remark(value));
    return value;
  };
  const { devices, mfu, bytes, within, context } = given;
  const took = result("days", time, (v) => `${years(v)}${words(devices)} × ${rate(peak)} dense ${fields.format.value} × ${digits(mfu)}`);
  const needed = result("needed", words, () => `to be done within ${time(within)}`);
  draw(took, devices, needed, within);
  const flop = (v) => `${v < 1e6 ? exact.format(v) : power(v)} FLOP`;
  result("work", flop, () => "6 per parameter and token");
  const fits = (value) => {
    const share = value / card.memory;
    return share <= 1 ? `${digits(share * 100)} % of the ${size(card.memory)} of one ${card.name}` : `does not fit: ${digits(share)} times the ${size(card.memory)} of one ${card.name}`;
  };
  result("replicated", size, fits);
  result("sharded", size, fits);
  result("largest-replicated", words, () => `parameters; ${size(card.memory)} ÷ ${digits(bytes)} B (${card.source})`);
  result("largest-sharded", words, () => `parameters, over ${words(devices)} device${devices === 1 ? "" : "s"}`);
  const own = result("block-parameters", (v) => (v < 1e15 ? exact.format(v) : power(v)), (v) => words(v));
  const met = result("block-active", (v) => (v < 1e15 ? exact.format(v) : power(v)), (v) => (v === own ? "all of them" : `${digits((v / own) * 100)} % of all; the rest are experts that other tokens meet`));
  result("block-forward", flop, (v) => `with attention over all ${words(context)} tokens${met ? `; ${digits(v / met)} per parameter that it meets` : ""}`);
  result("block-training", flop, () => "three times as much: forward once, backward twice");
  result("block-activations", size, () => `${words(context)} tokens, all layers, bfloat16, norms in one kernel`);
  result("block-written", size, () => "with a weight for each head and pair of tokens");
  result("block-token", size, () => "in bfloat16, all layers");
  result("block-cache", size, () => `for ${words(Math.min(context, given.window))} tokens of one sequence`);
  take.disabled = own === undefined || own > LIMITS.parameters.most;
}

// ------------------------------------------------------------------ days against devices

const LEFT = 92, RIGHT = 604, TOP = 32, BOTTOM = 206;
const tens = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
const ten = (k) => (k < 3 ? exact.format(Number(`1e${k}`)) : words(10 ** k));

/** The line of all pairs of days and devices that do the same work, and on it what was typed and what was asked for. */
function draw(took, devices, needed, within) {
  const figure = document.getElementById("lb-curve");
  figure.hidden = took === undefined || needed === undefined;
  if (figure.hidden) return;
  const points = [[took, devices], [within, needed]].map((it) => it.map(Math.log10));
  const ends = [0, 1].map((i) => points.map((it) => it[i])).map((all) => [Math.floor(Math.min(...all) - 0.2), Math.ceil(Math.max(...all) + 0.2)]);
  const [[x0, x1], [y0, y1]] = ends;
  const x = (k) => (LEFT + ((k - x0) / (x1 - x0)) * (RIGHT - LEFT)).toFixed(1);
  const y = (k) => (BOTTOM - ((k - y0) / (y1 - y0)) * (BOTTOM - TOP)).toFixed(1);
  const sum = Math.log10(took) + Math.log10(devices); // the same along the line
  const [from, to] = [Math.max(x0, sum - y1), Math.min(x1, sum - y0)];
  const every = ([a, b], most) => tens(a, b).filter((k) => (k - a) % Math.ceil((b - a) / most) === 0);
  const parts = [
    ...every(ends[0], 6).map((k) => `<path d="M${x(k)} ${TOP}V${BOTTOM}"/><text x="${x(k)}" y="${BOTTOM + 20}" text-anchor="middle">${ten(k)}</text>`),
    ...every(ends[1], 5).map((k) => `<path d="M${LEFT} ${y(k)}H${RIGHT}"/><text x="${LEFT - 6}" y="${Number(y(k)) + 4}" text-anchor="end">${ten(k)}</text>`),
    `<text x="${RIGHT}" y="${BOTTOM + 42}" text-anchor="end">days</text><text x="${LEFT}" y="${TOP - 12}">devices</text>`,
    `<path class="lb-line" d="M${x(from)} ${y(sum - from)}L${x(to)} ${y(sum - to)}"/>`,
    ...points.map(([a, b], i) => `<circle class="${i ? "lb-asked" : "lb-given"}" cx="${x(a)}" cy="${y(b)}" r="6"/>`),
  ];
  figure.firstElementChild.innerHTML = parts.join("");
  const many = (n) => `${words(n)} device${n === 1 ? "" : "s"}`;
  figure.lastElementChild.textContent = `Half the days take twice the devices. ● ${many(devices)} take ${time(took)}; ○ ${time(within)} take ${many(needed)}.`;
}

// ------------------------------------------------------------------ the address keeps what was typed

function restore() {
  const asked = new URLSearchParams(location.search);
  const unknown = {};
  for (const name of [...asked.keys()]) if (owner(name) && !asked.has(owner(name))) asked.set(owner(name), "own");
  for (const [name, field] of Object.entries(fields)) {
    const text = (asked.get(name) ?? DEFAULTS[name]).slice(0, 40);
    if (!choices[name] || choices[name].includes(text)) field.value = text;
    else [field.value, unknown[name]] = [DEFAULTS[name], `${quoted(text)} is not in this list; ${DEFAULTS[name]} is shown.`];
  }
  fill();
  compute();
  for (const name of Object.keys(choices)) complain(name, unknown[name] ?? "");
}

function remember() {
  const address = new URL(location.href);
  for (const [name, field] of Object.entries(fields)) {
    const implied = field.value === DEFAULTS[name] || (owner(name) && Object.hasOwn(preset(owner(name)), name));
    if (implied) address.searchParams.delete(name);
    else address.searchParams.set(name, field.value);
  }
  if (address.href !== location.href) history.pushState(null, "", address);
}

form.addEventListener("input", (event) => {
  if (owner(event.target.name)) fields[owner(event.target.name)].value = "own";
  if (PRESETS[event.target.name]) fill();
  if (choices[event.target.name]) complain(event.target.name, "");
  compute();
});
take.addEventListener("click", () => {
  fields.parameters.value = document.getElementById("lb-out-block-parameters").dataset.value;
  compute();
  remember();
  fields.parameters.focus();
});
form.addEventListener("change", remember);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", (event) => {
  event.preventDefault();
  for (const [name, field] of Object.entries(fields)) field.value = DEFAULTS[name];
  for (const name of Object.keys(choices)) complain(name, "");
  compute();
  remember();
});
addEventListener("popstate", restore);

restore();
form.hidden = false;
document.getElementById("lb-calc-off").hidden = true;
