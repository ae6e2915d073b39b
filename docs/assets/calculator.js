// The napkin calculator. Formulas and limits are those of lectures/napkin.py; tests compare the two.
import { CARDS, FORMATS, LIMITS, RECIPES } from "./calculator-data.js";

const DAY = 24 * 60 * 60;
const work = (parameters, tokens) => 6 * parameters * tokens;
const days = (parameters, tokens, devices, peak, mfu) => work(parameters, tokens) / (peak * (mfu * devices) * DAY);
const memory = (parameters, bytes, devices) => (parameters * bytes) / devices;
const largest = (size, bytes) => Math.floor(size / bytes);

// ------------------------------------------------------------------ numbers as people write them

const COUNTS = { "": 0, k: 3, thousand: 3, m: 6, mn: 6, million: 6, b: 9, bn: 9, g: 9, billion: 9, t: 12, tn: 12, trillion: 12 };
const SUFFIXES = { parameters: COUNTS, tokens: COUNTS, devices: COUNTS, mfu: { "": 0, "%": -2 }, bytes: { "": 0, b: 0, byte: 0, bytes: 0 } };
const EXAMPLES = { parameters: "70B", tokens: "15T", devices: "1024", mfu: "0.4", bytes: "16" };
const NUMBER = /^([+\-−]?)(\d+|\d{1,3}(?:[,_ \u00a0\u202f]\d{3})+)?(\.\d*)?(?:e([+\-−]?\d{1,4}))?\s*([a-z]*|%)$/i;
const quoted = (text) => `“${text.length > 24 ? `${text.slice(0, 24)}…` : text}”`;

/** The number that `text` says, or a sentence on what is wrong with it. */
function read(name, label, text) {
  const { least, most, whole } = LIMITS[name];
  if (!text.trim()) return `Give a number, such as ${EXAMPLES[name]}.`;
  const [, sign, digits = "", fraction = "", power = "0", suffix] = NUMBER.exec(text.trim()) ?? [];
  const ten = suffix?.toLowerCase() ?? "?";
  if (!Object.hasOwn(SUFFIXES[name], ten) || !(digits || fraction.length > 1)) {
    const comma = /^\d+,\d+\D*$/.test(text.trim()) ? " Decimals take a point." : "";
    return `${quoted(text)} is not a number that this field knows; write it like ${EXAMPLES[name]}.${comma}`;
  }
  const exponent = Number(power.replace("−", "-")) + SUFFIXES[name][ten];
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
const label = (field) => field.labels[0].textContent.split(",")[0];
const choices = { device: CARDS.map((c) => c.name), format: FORMATS, recipe: [...RECIPES.map((r) => r.key), "own"] };
const titles = { recipe: [...RECIPES.map((r) => r.name), "a number of my own"] };
for (const [name, keys] of Object.entries(choices)) {
  keys.forEach((key, i) => fields[name].add(new Option(titles[name]?.[i] ?? key, key)));
}
for (const field of Object.values(fields)) if (field.tagName === "INPUT") Object.assign(field, { maxLength: 40, spellcheck: false });
const DEFAULTS = { ...Object.fromEntries(Object.values(fields).map((it) => [it.name, it.value])), device: "H100 SXM", format: "bfloat16", recipe: "adamw" };
for (const name of Object.keys(choices)) if (!choices[name].includes(DEFAULTS[name])) [DEFAULTS[name]] = choices[name];
const recipe = () => RECIPES.find((it) => it.key === fields.recipe.value);

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
  const card = CARDS.find((it) => it.name === fields.device.value);
  const peak = card.peaks[fields.format.value];
  const { parameters, tokens, devices, mfu, bytes } = given;
  const result = (name, needs, formula, text, remark) => {
    const missing = needs.filter((it) => it in wrong).map((it) => label(fields[it]));
    if (missing.length) return show(name, null, "–", `waits for: ${missing.join(", ")}`);
    const value = formula();
    return show(name, value, text(value), remark(value));
  };
  if (peak === null) show("days", null, "not available", `the ${card.name} promises no rate in ${fields.format.value}`);
  else {
    result("days", ["parameters", "tokens", "devices", "mfu"], () => days(parameters, tokens, devices, peak, mfu), time,
      (value) => `${years(value)}${words(devices)} × ${rate(peak)} dense ${fields.format.value} × ${digits(mfu)}`);
  }
  result("work", ["parameters", "tokens"], () => work(parameters, tokens), (v) => `${v < 1e6 ? exact.format(v) : power(v)} FLOP`, () => "6 per parameter and token");
  const fits = (value) => {
    const share = value / card.memory;
    return share <= 1 ? `${digits(share * 100)} % of the ${size(card.memory)} of one ${card.name}` : `does not fit: ${digits(share)} times the ${size(card.memory)} of one ${card.name}`;
  };
  const model = (pool) => () => largest(pool(), bytes);
  result("replicated", ["parameters", "bytes"], () => memory(parameters, bytes, 1), size, fits);
  result("sharded", ["parameters", "bytes", "devices"], () => memory(parameters, bytes, devices), size, fits);
  result("largest-replicated", ["bytes"], model(() => card.memory), words, () => `parameters; ${size(card.memory)} ÷ ${digits(bytes)} B (${card.source})`);
  result("largest-sharded", ["bytes", "devices"], model(() => card.memory * devices), words, () => `parameters, over ${words(devices)} device${devices === 1 ? "" : "s"}`);
}

// ------------------------------------------------------------------ the address keeps what was typed

function restore() {
  const asked = new URLSearchParams(location.search);
  const unknown = {};
  if (asked.has("bytes") && !asked.has("recipe")) asked.set("recipe", "own");
  for (const [name, field] of Object.entries(fields)) {
    const text = (asked.get(name) ?? DEFAULTS[name]).slice(0, 40);
    if (!choices[name] || choices[name].includes(text)) field.value = text;
    else [field.value, unknown[name]] = [DEFAULTS[name], `${quoted(text)} is not in this list; ${DEFAULTS[name]} is shown.`];
  }
  if (recipe()) fields.bytes.value = recipe().bytes;
  compute();
  for (const name of Object.keys(choices)) complain(name, unknown[name] ?? "");
}

function remember() {
  const address = new URL(location.href);
  for (const [name, field] of Object.entries(fields)) {
    const implied = field.value === DEFAULTS[name] || (name === "bytes" && recipe());
    if (implied) address.searchParams.delete(name);
    else address.searchParams.set(name, field.value);
  }
  if (address.href !== location.href) history.pushState(null, "", address);
}

form.addEventListener("input", (event) => {
  if (event.target === fields.bytes) fields.recipe.value = "own";
  if (event.target === fields.recipe && recipe()) fields.bytes.value = recipe().bytes;
  if (choices[event.target.name]) complain(event.target.name, "");
  compute();
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
