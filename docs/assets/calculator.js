// The calculator's page: fields in, answers out. Formulas, messages, models and cards are in calculator-data.js, which is
// translated from lectures/napkin*.py when the site is built; here is only what a browser is needed for.
import * as napkin from "./calculator-data.js";

const { CARDS, FIELDS, LARGEST, MODELS, SECTIONS, SHAPE_FIELDS } = napkin;
const PARTS = { fit: "Memory", run: "The run", serve: "Serving", traffic: "Traffic in a step", model: "The model" };
const START = { job: "pretrain", model: "Llama-3-70B", device: "H100 SXM" };
const form = document.getElementById("lb-calc");
const fields = Object.fromEntries([...form.elements].filter((it) => it.name).map((it) => [it.name, it]));
const at = (id) => document.getElementById(`lb-${id}`);
const label = (name) => fields[name].labels[0].textContent;
const shapeName = (it) => `shape-${it.name}`;

for (const it of Object.values(fields)) if (it.tagName === "INPUT") Object.assign(it, { maxLength: 40, spellcheck: false });

let reading = null; // what the chosen model, or the config.json that was pasted, says beside its shape
let job = START.job; // the one that the fields' values belong to
let current = null; // the answer that is shown, with what it rests on; null where a field is wrong

// ------------------------------------------------------------------ fields

function complain(name, text) {
  fields[name].setAttribute("aria-invalid", text ? "true" : "false");
  at(`${name}-wrong`).textContent = text;
  const closed = text && fields[name].closest("details:not([open])");
  if (closed) closed.open = true;
}

/** The fields of a shape say this one. */
function fillShape(shape) {
  const texts = napkin.shape_texts(shape);
  for (const it of SHAPE_FIELDS) fields[shapeName(it)].value = texts[it.name];
}

/** The fields that a job asks for; what nobody has typed gets the defaults of the job. */
function turnTo(next) {
  for (const it of FIELDS) {
    if (fields[it.name].value === napkin.default_of(it, job)) fields[it.name].value = napkin.default_of(it, next);
    fields[it.name].closest(".lb-field").hidden = !napkin.asks(it, next);
  }
  job = next;
}

function choose(model) {
  const before = reading?.precision ?? "bfloat16";
  reading = napkin.shape_of(MODELS[model], model);
  if (fields.precision.value === before) fields.precision.value = reading.precision;
  fields.parameters.value = "";
  fillShape(reading.shape);
}

/** The config.json of the reader: its shape to the fields, or what is wrong with it. */
function take(text) {
  const wrong = at("config-wrong");
  at("config").setAttribute("aria-invalid", "false");
  wrong.textContent = "";
  if (!text.trim()) return;
  let found;
  if (text.length > LARGEST) found = { wrong: `This has ${napkin.words(text.length)} characters; a config.json has a few thousand.` };
  else {
    try {
      found = napkin.shape_of(JSON.parse(text), "your own");
    } catch (error) {
      found = { wrong: `This is no JSON: ${error.message.slice(0, 80)}.` };
    }
  }
  wrong.classList.remove("lb-read");
  if (found.wrong) {
    at("config").setAttribute("aria-invalid", "true");
    wrong.textContent = found.wrong;
    return;
  }
  reading = found;
  fields.model.value = "own";
  fields.parameters.value = "";
  fields.precision.value = found.precision;
  fillShape(found.shape);
  wrong.classList.add("lb-read");
  wrong.textContent = `Read: ${napkin.words(napkin.parameter_count(found.shape))} parameters.`;
  compute();
  remember();
}

// ------------------------------------------------------------------ the answer

function compute() {
  const texts = { job };
  for (const it of FIELDS) if (napkin.asks(it, job)) texts[it.name] = fields[it.name].value;
  const device = CARDS.find((it) => it.name === fields.device.value);
  const name = fields.model.value === "own" ? "your own" : fields.model.value;
  const typed = napkin.shape_of_texts(Object.fromEntries(SHAPE_FIELDS.map((it) => [it.name, fields[shapeName(it)].value])), name);
  const asked = napkin.read_question(texts);
  const wrong = { ...asked.wrong };
  for (const [key, text] of Object.entries(typed.wrong)) wrong[`shape-${key}`] = text;
  if (!Object.keys(wrong).length) Object.assign(wrong, napkin.check(asked.question, typed.shape, device));
  for (const key of Object.keys(fields)) if (key in wrong || fields[key].getAttribute("aria-invalid") === "true") complain(key, wrong[key] ?? "");
  const missing = Object.keys(wrong);
  if (missing.length) current = null;
  else {
    const found = napkin.answer(asked.question, typed.shape, device, reading?.left_out ?? []);
    current = { found, question: asked.question, device, given: napkin.assumptions(texts, typed.shape, device) };
  }
  judge(missing);
  draw();
  list();
}

function sentences(id, texts) {
  at(id).replaceChildren(...texts.map((textContent) => Object.assign(document.createElement("li"), { textContent })));
}

/** What would make it fit, a row each, with a button. On a phone a cell stands below its head, which it repeats. */
function offers(found) {
  const table = at("changes");
  table.hidden = !found?.changes.length;
  if (table.hidden) return;
  const row = (tag, texts) => {
    const made = document.createElement("tr");
    for (const textContent of texts) made.append(Object.assign(document.createElement(tag), { textContent }));
    return made;
  };
  table.tHead.replaceChildren(row("th", [...found.heads.slice(0, -1), ""]));
  table.tBodies[0].replaceChildren(
    ...found.changes.map((it) => {
      const made = row("td", it.cells.slice(0, -1)), [first, ...rest] = made.cells;
      if (it.cells.at(-1)) first.append(Object.assign(document.createElement("small"), { textContent: `${found.heads.at(-1)} ${it.cells.at(-1)}` }));
      rest.forEach((cell, i) => { cell.dataset.head = found.heads[i + 1]; });
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Apply" });
      button.setAttribute("aria-label", `Apply: ${it.cells[0]}`);
      button.addEventListener("click", () => apply(it.fields));
      made.insertCell().append(button);
      return made;
    }),
  );
}

/** A change that would fit goes into the fields; the first of them is shown. */
function apply(texts) {
  keepNow();
  for (const [name, text] of Object.entries(texts)) fields[name].value = text;
  const first = fields[Object.keys(texts)[0]], closed = first.closest("details:not([open])");
  if (closed) closed.open = true;
  compute();
  remember();
  first.focus();
}

function judge(missing) {
  const verdict = at("verdict"), found = current?.found;
  verdict.dataset.fits = String(found ? found.fits : null);
  const [title, text] = verdict.firstElementChild.children;
  title.textContent = found ? `${found.fits ? "✓" : "✗"} ${found.title}` : "–";
  text.textContent = found ? found.text : `Waits for: ${missing.map(label).join(", ")}`;
  offers(found);
  sentences("warnings", found?.warnings ?? []);
  for (const id of ["markdown", "csv"]) at(id).disabled = !found;
}

/** The frame of the memory, and in it what is kept. */
function draw() {
  const figure = at("stack");
  figure.style.visibility = current ? "visible" : "hidden"; // its place stays
  if (!current) return;
  const { found, question, device } = current;
  const row = Object.fromEntries(found.rows.map((it) => [it.key, it]));
  const serving = question.job === "serve";
  const memory = serving ? device.memory * question.devices : device.memory;
  const free = serving ? memory * question.reserve : row.free.value;
  const kept = serving
    ? [["weights", row.weights.value], ["KV cache", row.need.value - row.weights.value]]
    : [["state", row.state.value], ["activations", row.activations.value], ["softmax", row.logits.value]];
  const all = Math.max(memory, row.need.value + free);
  let x = 2;
  const parts = kept.map(([, bytes], i) => {
    const width = (bytes / all) * 636;
    const part = `<rect class="lb-part-${i}" x="${x.toFixed(1)}" y="20" width="${width.toFixed(1)}" height="34"/>`;
    x += width;
    return part;
  });
  const end = 2 + (memory / all) * 636, from = end - (free / all) * 636;
  parts.push(`<rect class="lb-free" x="${from.toFixed(1)}" y="20" width="${(end - from).toFixed(1)}" height="34"/>`, `<rect class="lb-card-edge" x="2" y="12" width="${(end - 2).toFixed(1)}" height="50"/>`);
  figure.firstElementChild.innerHTML = parts.join("");
  const whose = serving && question.devices > 1 ? `of ${napkin.words(question.devices)} ${device.name} together` : `of one ${device.name}`;
  const says = figure.lastElementChild;
  says.textContent = `The frame is the ${napkin.size(memory)} ${whose}. In it: `;
  kept.forEach(([name, bytes], i) => {
    const key = document.createElement("i");
    key.className = `lb-part-${i}`;
    says.append(key, `${name} ${napkin.size(bytes)}${i + 1 < kept.length ? ", " : "; "}`);
  });
  says.append(`${napkin.size(free)} kept free.`);
}

const shown = {}; // the elements of each result, by its key: an opened one stays open while one types

function result(key) {
  const element = document.createElement("details");
  element.className = "lb-result";
  element.innerHTML = `<summary><span></span> <b class="lb-value" id="lb-out-${key}"></b> <small></small></summary><p><code></code> <a>Where this is shown</a></p>`;
  shown[key] = element;
  return element;
}

/** All results, in parts; each opens its formula with the numbers put in. */
function list() {
  const rows = current?.found.rows ?? [];
  const wanted = rows.map((it) => `${it.part}/${it.key}`).join(" ");
  const place = at("rows");
  place.style.visibility = current ? "visible" : "hidden";
  if (current && place.dataset.keys !== wanted) {
    place.dataset.keys = wanted;
    place.replaceChildren();
    for (const part of new Set(rows.map((it) => it.part))) {
      const group = Object.assign(document.createElement("div"), { className: "lb-results" });
      group.setAttribute("role", "group");
      group.setAttribute("aria-label", PARTS[part]);
      group.append(Object.assign(document.createElement("b"), { textContent: PARTS[part] }));
      for (const it of rows) if (it.part === part) group.append(shown[it.key] ?? result(it.key));
      place.append(group);
    }
  }
  for (const it of rows) {
    const [summary, formula] = shown[it.key].children;
    const [name, output, remark] = summary.children;
    const bound = it.bound && it.bound !== "estimate" ? `${it.bound}; ` : "";
    name.textContent = it.name;
    output.textContent = it.text;
    output.dataset.value = String(it.value);
    remark.textContent = bound + it.remark;
    formula.firstElementChild.textContent = it.formula;
    const [page, anchor] = SECTIONS[it.section].split("#");
    formula.lastElementChild.href = `../lectures/${page}/#${anchor}`;
  }
}

// ------------------------------------------------------------------ the address keeps everything

const starts = (name) => START[name] ?? (FIELDS.some((it) => it.name === name) ? napkin.default_of(FIELDS.find((it) => it.name === name), job) : null);

function restore() {
  const asked = new URLSearchParams(location.search), unknown = {};
  const text = (name, otherwise) => {
    const said = (asked.get(name) ?? otherwise).slice(0, 40), field = fields[name];
    if (field.tagName !== "SELECT" || [...field.options].some((it) => it.value === said)) return said;
    unknown[name] = `“${said.slice(0, 24)}” is not in this list; ${otherwise} is shown.`;
    return otherwise;
  };
  fields.job.value = text("job", START.job);
  turnTo(fields.job.value);
  fields.device.value = text("device", START.device);
  fields.model.value = text("model", START.model);
  const own = fields.model.value === "own";
  reading = null;
  choose(own ? START.model : fields.model.value);
  if (own) {
    reading = null;
    for (const it of SHAPE_FIELDS) fields[shapeName(it)].value = text(shapeName(it), fields[shapeName(it)].value);
  }
  for (const it of FIELDS) fields[it.name].value = text(it.name, it.name === "precision" && reading ? reading.precision : napkin.default_of(it, job));
  compute();
  for (const [name, said] of Object.entries(unknown)) complain(name, said);
}

let typing = null, kept = null; // the field that is typed in, and the one whose text the address got last
let pause;

function remember() {
  const address = new URL(location.href), own = fields.model.value === "own";
  const like = napkin.shape_texts(napkin.shape_of(MODELS[START.model], "").shape);
  for (const [name, field] of Object.entries(fields)) {
    const shape = name.startsWith("shape-");
    let implied = shape ? !own || field.value === like[name.slice(6)] : field.value === starts(name);
    if (name === "precision") implied = field.value === (own ? "bfloat16" : reading.precision);
    if (implied || (!shape && field.closest(".lb-field").hidden)) address.searchParams.delete(name);
    else address.searchParams.set(name, field.value);
  }
  if (address.href !== location.href) history[typing && typing === kept ? "replaceState" : "pushState"](null, "", address);
  else return;
  kept = typing;
}

/** What is typed goes into the address at once, and what comes next has a step of its own. */
function keepNow() {
  clearTimeout(pause);
  remember();
  typing = kept = null;
}

form.addEventListener("input", ({ target }) => {
  if (target.id === "lb-config") return take(target.value);
  if (target === fields.job) turnTo(target.value);
  else if (target === fields.model && target.value !== "own") choose(target.value);
  else if (target.name?.startsWith("shape-") || (target === fields.parameters && target.value.trim())) fields.model.value = "own";
  if (target.tagName === "SELECT") complain(target.name, "");
  if (!target.name) return;
  compute();
  typing = target;
  clearTimeout(pause);
  pause = setTimeout(remember, 250); // a browser takes only so many addresses in a time
});
form.addEventListener("change", ({ target }) => {
  if (!target.name) return;
  keepNow();
});
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", (event) => {
  event.preventDefault();
  clearTimeout(pause);
  history.pushState(null, "", location.pathname);
  at("config").value = at("config-wrong").textContent = "";
  at("config").setAttribute("aria-invalid", "false");
  restore();
});
addEventListener("popstate", () => {
  clearTimeout(pause);
  typing = kept = null;
  restore();
});

// ------------------------------------------------------------------ files in, tables out

async function read(file) {
  if (!file) return;
  at("config-part").open = true;
  if (file.size > 4 * LARGEST) at("config-wrong").textContent = `${file.name.slice(0, 40)} has ${napkin.size(file.size)}; a config.json has a few kB.`;
  else take((at("config").value = await file.text()));
}
at("file").addEventListener("change", ({ target }) => read(target.files[0]));
form.addEventListener("dragover", (event) => event.preventDefault());
form.addEventListener("drop", (event) => {
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  read(event.dataTransfer.files[0]);
});

function save(text, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(new Blob([text])), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}
at("markdown").addEventListener("click", async () => {
  const text = `${napkin.as_markdown(current.found, current.given)}\n<${location.href}>\n`;
  try {
    await navigator.clipboard.writeText(text);
    at("taken").textContent = "Copied.";
  } catch {
    save(text, "napkin.md"); // where a page may not copy
    at("taken").textContent = "Saved as napkin.md.";
  }
});
at("csv").addEventListener("click", () => save(napkin.as_csv(current.found, current.given), "napkin.csv"));

restore();
form.classList.add("lb-ready");
at("calc-off").hidden = true;
