// The napkin calculator. Its formulas, limits and models are made from those of lectures/ when the site is built.
import { CARDS, FORMATS, FORMULAS, LIMITS, MODELS, RECIPES } from "./calculator-data.js";

const DAY = 24 * 60 * 60;

// ------------------------------------------------------------------ numbers as people write them

const COUNTS = { "": 0, k: 3, thousand: 3, m: 6, mn: 6, million: 6, b: 9, bn: 9, g: 9, billion: 9, t: 12, tn: 12, trillion: 12 };
const SHARE = { "": 0, "%": -2 }, BYTES = { "": 0, b: 0, byte: 0, bytes: 0 }, LINK = { "": 0, g: 0, gb: 0 };
const SUFFIXES = { mfu: SHARE, reserve: SHARE, watts: { "": 0, w: 0, kw: 3 }, bytes: BYTES, weight: BYTES, gradient: BYTES, inside: LINK, between: LINK, within: { "": 0, d: 0, day: 0, days: 0 } };
const EXAMPLES = { parameters: "70B", tokens: "15T", devices: "1024", mfu: "0.4", bytes: "16", within: "30", sequences: "1", reserve: "10 %", price: "2", watts: "700", serving: "4", weight: "2", gradient: "2", tensor: "8", stages: "16", microbatches: "16", inside: "450", between: "50", ...numbers(Object.values(MODELS)[0] ?? {}) };
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
const choices = { device: CARDS.map((c) => c.name), format: FORMATS, recipe: [...RECIPES.map((r) => r.key), "own"], model: [...Object.keys(MODELS), "own"], spread: ["yes", "no"], zero: ["0", "1", "2", "3"], again: ["no", "yes"], tied: ["no", "yes"], bias: ["no", "yes"], normed: ["no", "yes"] };
const FLAGS = ["spread", "again", "tied", "bias", "normed"];
const titles = { recipe: [...RECIPES.map((r) => r.name), "a number of my own"], model: [...Object.keys(MODELS), "a shape of my own"], spread: ["divided among all devices", "whole on each device"], again: ["all kept", "each block computed again"], zero: ["nothing: data parallelism", "stage one: the optimizer", "stage two: gradients, too", "stage three, FSDP: weights, too"] };
// What a choice sets in other fields; whoever changes one of those has made a choice of one's own.
const PRESETS = {
  recipe: Object.fromEntries(RECIPES.map((it) => [it.key, numbers({ bytes: it.bytes, weight: it.weight, gradient: it.gradient })])),
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
/** How many parameters a published model has, as the field takes it. */
const exactly = (model) => {
  const shape = Object.fromEntries(Object.entries(MODELS[model]).map(([name, it]) => [name, Number(it)]));
  return String(FORMULAS["block-parameters"][1](shape));
};
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

/** What the fields say, and what is wrong with them. */
function entered() {
  const given = {}, wrong = {};
  for (const name of Object.keys(LIMITS)) {
    const value = read(name, label(fields[name]), fields[name].value);
    if (typeof value === "number") given[name] = value;
    else wrong[name] = value;
  }
  if (!("kv_heads" in wrong) && given.heads % given.kv_heads) {
    wrong.kv_heads = `${fields.kv_heads.value} does not divide ${fields.heads.value}, the heads of queries.`;
  }
  if (!("active" in wrong) && given.active > given.experts) {
    wrong.active = `${fields.active.value} is more than ${fields.experts.value}, the experts in a layer.`;
  }
  for (const name of Object.keys(LIMITS)) complain(name, wrong[name] ?? "");
  for (const name of FLAGS) given[name] = Number(fields[name].value === "yes");
  given.zero = Number(fields.zero.value);
  return [given, wrong];
}

const flop = (v) => `${v < 1e6 ? exact.format(v) : power(v)} FLOP`;
const count = (v) => (v < 1e15 ? exact.format(v) : power(v));
const many = (n) => `${words(n)} device${n === 1 ? "" : "s"}`;
const round = (v) => (v >= 1000 && v < 1e6 ? exact.format(Math.round(v)) : words(Number(v.toPrecision(4))));
const seconds = (v) => time(v / DAY);
const second = (v) => `${digits(v)} tokens/s`;
/** Of each output: its number as a text, and a remark, both from the number and all that is known. */
const SAYS = {
  fit: [size, (v, g) => `${size(g.room)} to use: ${size(g.memory)} less ${digits(g.reserve * 100)} %`],
  state: [size, (v, g) => (g.spread && g.devices > 1 ? `${digits(g.bytes)} B a parameter, over ${many(g.devices)}` : `${digits(g.bytes)} B a parameter`)],
  activations: [size, (v, g) => (Math.abs(g.block_parameters / g.parameters - 1) > 0.1 ? `of the shape below, ${words(g.block_parameters)} parameters` : `${words(g.sequences)} × ${words(g.context)} tokens`)],
  softmax: [size, (v, g) => `float32, ${words(g.vocabulary)} a token`],
  batch: [(v) => words(Math.max(v, 0)), (v, g) => `of ${words(g.context)} tokens`],
  days: [time, (v, g) => `${years(v)}${words(g.devices)} × ${rate(g.peak)} × ${digits(g.mfu)}`],
  needed: [words, (v, g) => `to be done within ${time(g.within)}`],
  hours: [round, () => "the same on any number of devices"],
  cost: [round, (v, g) => `at ${digits(g.price)} an hour`],
  energy: [(v) => scaled(v, 1000, ["kWh", "MWh", "GWh", "TWh"]), (v, g) => `at ${digits(g.watts)} W each`],
  work: [flop, () => "6 per parameter and token"],
  weights: [size, (v, g) => (g.serving > 1 ? `${size(v / g.serving)} on each of ${many(g.serving)}` : "on one device")],
  texts: [(v) => (v < 0 ? "none" : words(v)), (v, g) => (v < 0 ? "the weights do not fit" : `${size(g.block_cache)} of KV cache each`)],
  alone: [second, () => "bandwidth ÷ bytes read"],
  all: [second, (v, g) => `${digits(v / g.texts)} for each of ${words(g.texts)}`],
  "block-parameters": [count, words],
  "block-active": [count, (v, g) => (v === g.block_parameters ? "all of them" : `${digits((v / g.block_parameters) * 100)} % of all; the rest are experts that other tokens meet`)],
  "block-forward": [flop, (v, g) => `with attention over all ${words(g.context)} tokens; ${digits(v / g.block_active)} per parameter that it meets`],
  "block-training": [flop, () => "three times as much: forward once, backward twice"],
  "block-kept": [size, () => "bfloat16, norms in one kernel"],
  "block-activations": [size, (v, g) => `${words(g.context)} tokens, all layers`],
  "block-written": [size, () => "with a weight for each head and pair of tokens"],
  "block-token": [size, () => "in bfloat16, all layers"],
  "block-cache": [size, (v, g) => `for ${words(Math.min(g.context, g.window))} tokens of one sequence`],
  "block-read": [size, () => "two for each weight that a token meets"],
  "layout-data": [words, (v, g) => `${words(g.devices)} ÷ (${words(g.tensor)} × ${words(g.stages)})`],
  "layout-fit": [size, (v, g) => `${v <= g.room ? "it fits" : "it does not fit"}: ${size(g.room)} to use`],
  "layout-state": [size, (v, g) => `of ${words(Math.round(g.parameters / g.tensor / g.stages))} parameters`],
  "layout-activations": [size, (v, g) => `of the first stage, ${words(Math.min(g.microbatches, g.stages))} microbatches open`],
  "layout-step": [seconds, (v, g) => `${words(g.microbatches * g.sequences * g.context * g.layout_data)} tokens`],
  "layout-computing": [seconds, (v, g) => `at an MFU of ${digits(g.mfu)}`],
  "layout-bubble": [(v) => `${digits(v * 100)} %`, () => "of the time a stage waits"],
  "layout-products": [size, () => "in a step, four all-reduces a layer"],
  "layout-products-time": [seconds, (v, g) => (g.layout_computing ? `${digits((v / g.layout_computing) * 100)} % of the arithmetic, on top of it` : "")],
  "layout-weights": [size, () => "in a step, along the axis data"],
  "layout-weights-time": [seconds, (v, g) => (!g.layout_computing ? "" : v <= g.layout_computing ? "hides behind the arithmetic" : `${seconds(v - g.layout_computing)} do not hide`)],
  "layout-stages": [size, () => "in a step, there and back"],
  "largest-replicated": [words, (v, g) => `parameters; ${size(g.memory)} ÷ ${digits(g.bytes)} B (${g.card.source})`],
  "largest-sharded": [words, (v, g) => `parameters, over ${many(g.devices)}`],
};

function compute() {
  const [given, wrong] = entered();
  const card = CARDS.find((it) => it.name === fields.device.value);
  const peak = card.peaks[fields.format.value];
  Object.assign(given, { card, peak, memory: card.memory, bandwidth: card.bandwidth, room: card.memory * (1 - given.reserve) });
  const whole = given.tensor * given.stages;
  const waits = {}; // of each result that is not there: the fields that it waits for; null where no rate is promised
  for (const [name, [needs, formula]] of Object.entries(FORMULAS)) {
    const key = name.replaceAll("-", "_");
    const missing = needs.flatMap((it) => (it in wrong ? [label(fields[it])] : waits[it] ?? []));
    if (needs.some((it) => waits[it] === null) || (needs.includes("peak") && peak === null)) waits[key] = null;
    else if (missing.length) waits[key] = [...new Set(missing)];
    else if (name === "layout-data" && given.devices % whole) waits[key] = [`a multiple of ${words(whole)} devices`];
    else if (name === "layout-state" && given.weight + given.gradient > given.bytes) waits[key] = [`a weight and its gradient of at most ${digits(given.bytes)} B`];
    else given[key] = formula(given);
  }
  for (const [name, [text, remark]] of Object.entries(SAYS)) {
    const key = name.replaceAll("-", "_");
    const value = given[key];
    if (waits[key] === null) show(name, null, "not available", `the ${card.name} promises no rate in ${fields.format.value}`);
    else if (waits[key]) show(name, null, "–", `waits for: ${waits[key].join(", ")}`);
    else if (["alone", "all"].includes(name) && given.texts < 1) show(name, null, "–", given.texts < 0 ? "the weights do not fit" : "no text fits beside the weights");
    else show(name, value, text(value, given), remark(value, given));
  }
  judge(given, waits.fit);
  draw(given.days, given.devices, given.needed, given.within);
  take.disabled = given.block_parameters === undefined || given.block_parameters > LIMITS.parameters.most;
  for (const [slider, name] of sliders) if (given[name] !== undefined) slide(slider, given[name]);
}

// ------------------------------------------------------------------ does it fit?

/** What to do about a model that does not fit, in a sentence. */
function advice(g) {
  if (g.state > g.room) {
    const least = Math.ceil((g.parameters * g.bytes) / g.room);
    if (g.spread) return `Its state alone takes ${many(least)}.`;
    return g.devices >= least ? "Divide its state among the devices." : `Its state alone takes ${many(least)} among which it is divided.`;
  }
  if (g.batch >= 1) return `${words(g.batch)} sequence${g.batch === 1 ? "" : "s"} would fit.`;
  const again = FORMULAS.activations[1]({ ...g, again: 1, sequences: 1 });
  if (!g.again && g.state + again + g.softmax / g.sequences <= g.room) return `Blocks that are computed again keep ${size(again)} of a sequence.`;
  return "Not one sequence fits: take fewer tokens, or divide activations among devices, too.";
}

function judge(g, waiting) {
  const verdict = document.getElementById("lb-verdict");
  const fits = waiting ? null : g.fit <= g.room;
  verdict.dataset.fits = String(fits);
  const [title, text] = verdict.children;
  const took = g.days === undefined ? "" : `${time(g.days)}, ${round(g.hours)} device-hours. `;
  title.textContent = waiting ? "–" : fits ? "✓ It fits." : "✗ It does not fit.";
  text.textContent = waiting ? `Waits for: ${waiting.join(", ")}` : `${size(g.fit)} of ${size(g.room)} on each ${g.card.name}. ${took}${fits ? "" : advice(g)}${!fits && g.layout_fit <= g.room ? " In the layout below it fits." : ""}`;
  const figure = document.getElementById("lb-stack");
  figure.style.visibility = waiting ? "hidden" : "visible";
  if (waiting) return;
  const free = g.memory * g.reserve, all = Math.max(g.memory, g.fit + free);
  let x = 0;
  const parts = [["state", g.state], ["activations", g.activations], ["softmax", g.softmax]].map(([name, bytes]) => {
    const width = (bytes / all) * 636;
    const part = `<rect class="lb-${name}" x="${(2 + x).toFixed(1)}" y="20" width="${width.toFixed(1)}" height="34"/>`;
    x += width;
    return part;
  });
  const end = 2 + (g.memory / all) * 636, from = end - (free / all) * 636;
  parts.push(`<rect class="lb-free" x="${from.toFixed(1)}" y="20" width="${(end - from).toFixed(1)}" height="34"/>`, `<rect class="lb-card-edge" x="2" y="12" width="${(end - 2).toFixed(1)}" height="50"/>`);
  figure.firstElementChild.innerHTML = parts.join("");
  figure.lastElementChild.textContent = `The frame is the ${size(g.memory)} of one ${g.card.name}. In it: state ${size(g.state)}, activations ${size(g.activations)}, softmax ${size(g.softmax)}; ${size(free)} kept free.`;
}

// ------------------------------------------------------------------ sliders

const RANGES = { parameters: [1e6, 1e13], tokens: [1e8, 1e14], devices: [1, 1e5], mfu: [0.01, 1], sequences: [1, 1000], serving: [1, 100] };
const sliders = [...form.querySelectorAll("[data-for]")].map((it) => [it, it.dataset.for]);
/** A number of two digits as people write it: 1.5B. */
function short(value, whole) {
  const two = Number(value.toPrecision(2));
  const i = Math.max(0, Math.min(4, Math.floor(Math.log10(two) / 3)));
  return i > 1 ? `${Number((two / 1000 ** i).toPrecision(3))}${["", "", "M", "B", "T"][i]}` : String(whole ? Math.round(two) : two);
}
function slide(slider, value) {
  const [least, most] = RANGES[slider.dataset.for].map(Math.log);
  const place = Math.round((Math.min(1, Math.max(0, (Math.log(value) - least) / (most - least)))) * 1000);
  if (document.activeElement !== slider || Math.abs(place - slider.value) > 40) slider.value = String(place);
  slider.setAttribute("aria-valuetext", fields[slider.dataset.for].value);
}
for (const [slider, name] of sliders) {
  slider.addEventListener("input", (event) => {
    event.stopPropagation();
    const [least, most] = RANGES[name].map(Math.log);
    fields[name].value = short(Math.exp(least + (slider.value / 1000) * (most - least)), LIMITS[name].whole);
    compute();
  });
}

// ------------------------------------------------------------------ days against devices

const LEFT = 92, RIGHT = 604, TOP = 32, BOTTOM = 206;
const tens = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
const ten = (k) => (k < 3 ? exact.format(Number(`1e${k}`)) : words(10 ** k));

/** The line of all pairs of days and devices that do the same work, and on it what was typed and what was asked for. */
function draw(took, devices, needed, within) {
  const figure = document.getElementById("lb-curve");
  const missing = took === undefined || needed === undefined;
  figure.style.visibility = missing ? "hidden" : "visible"; // its place stays
  if (missing) return;
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
  if (event.target.name === "model" && fields.model.value !== "own") fields.parameters.value = exactly(fields.model.value);
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

form.classList.add("lb-ready");
restore();
document.getElementById("lb-calc-off").hidden = true;
