// The ledger: sorting by column, and filters by section and device, beside the radio buttons for verdicts.
// The radio buttons work by style rules on the class of a row; choosing a device gives the rows its verdicts.
const bar = document.querySelector(".lb-filters");
const tables = [...document.querySelectorAll("table.lb-ledger")];
const rows = tables.flatMap((table) => [...table.tBodies[0].rows]);
const verdicts = ["holds", "fails", "not-reached", "needs-device", "none"];
const order = (verdict) => ["fails", "not-reached", "needs-device", "none", "holds"].indexOf(verdict);

// A row says its section and line, a cell its verdict; nothing is said twice in the page, which is long enough.
for (const row of rows) {
  [, row.dataset.section, row.dataset.line] = row.cells[1].textContent.trim().match(/^(.*):(\d+)$/s);
  for (const cell of row.querySelectorAll(".lb-ruling")) {
    cell.dataset.verdict ??= verdicts.find((verdict) => cell.classList.contains(`lb-${verdict}`));
  }
}

function choice(label, options) {
  const field = document.createElement("label");
  const select = document.createElement("select");
  select.append(...options.map(([value, text]) => new Option(text, value)));
  field.append(`${label} `, select);
  bar.append(field);
  return select;
}

const names = [...new Set(rows.map((row) => row.dataset.section))];
const section = choice("section", [["", "all"], ...names.map((name) => [name, name])]);
const heads = [...new Set(tables.flatMap((table) => [...table.tHead.rows[0].cells].slice(2).map((cell) => cell.textContent)))];
const device = choice("verdicts of", heads.map((name) => [name, name]));
const shown = document.createElement("output");
shown.className = "lb-shown";
bar.append(shown);

function filter() {
  for (const table of tables) {
    const column = [...table.tHead.rows[0].cells].findIndex((cell) => cell.dataset.name === device.value);
    for (const row of table.tBodies[0].rows) {
      row.classList.remove(...verdicts.map((verdict) => `lb-${verdict}`));
      row.classList.add(`lb-${row.cells[column]?.dataset.verdict ?? "none"}`);
      row.hidden = section.value !== "" && row.dataset.section !== section.value;
    }
  }
  const asked = bar.querySelector("input:checked").value;
  const left = rows.filter((row) => !row.hidden && (asked === "all" || row.classList.contains(`lb-${asked}`)));
  shown.textContent = `${left.length} of ${rows.length}`;
}

function key(row, column) {
  const cell = row.cells[column];
  if (column === 1) return [row.dataset.section, Number(row.dataset.line)];
  return column === 0 ? [cell.textContent.trim(), 0] : [order(cell.dataset.verdict), Number(row.dataset.line)];
}

function sort(table, head, column) {
  const down = head.ariaSort === "ascending";
  for (const cell of table.tHead.rows[0].cells) cell.ariaSort = "none";
  head.ariaSort = down ? "descending" : "ascending";
  const keyed = [...table.tBodies[0].rows].map((row) => [key(row, column), row]);
  const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b));
  keyed.sort(([a], [b]) => (compare(a[0], b[0]) || compare(a[1], b[1])) * (down ? -1 : 1));
  table.tBodies[0].append(...keyed.map(([, row]) => row));
}

for (const table of tables) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.dataset.name = head.textContent;
    head.replaceChildren(button);
    head.ariaSort = "none";
    button.addEventListener("click", () => sort(table, head, column));
  });
}
bar.addEventListener("change", filter);
filter();
