// The filter of "Commonly said, measured otherwise": every word has to occur. The words are in the address.
const box = document.querySelector(".lb-find");
const field = box.querySelector("input");
const shown = box.querySelector(".lb-shown");
const entries = [...document.querySelectorAll(".lb-sayings > li")];
const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
const texts = entries.map((entry) => plain(entry.textContent));

// Each heading with the lists below it: of a page of a lecture (the nearest), and, above these, of the lecture.
const lists = [...document.querySelectorAll(".lb-sayings")];
const headed = new Map();
for (const list of lists) {
  let level = 7;
  for (let it = list.previousElementSibling; it && it !== box; it = it.previousElementSibling) {
    const rank = Number(/^H([2-6])$/.exec(it.tagName)?.[1] ?? 7);
    if (rank >= level) continue;
    level = rank;
    headed.set(it, [...(headed.get(it) ?? []), list]);
  }
}

function filter() {
  const words = plain(field.value).split(/\s+/).filter(Boolean);
  entries.forEach((entry, i) => { entry.hidden = !words.every((word) => texts[i].includes(word)); });
  for (const list of lists) list.hidden = [...list.children].every((entry) => entry.hidden);
  for (const [heading, below] of headed) heading.hidden = below.every((list) => list.hidden);
  shown.textContent = shown.dataset.words.replace("{n}", entries.filter((entry) => !entry.hidden).length).replace("{all}", entries.length);
}

function remember() {
  const address = new URL(location.href);
  address.searchParams.delete("q");
  if (field.value.trim()) address.searchParams.set("q", field.value.trim());
  history.replaceState(null, "", address);
}

field.value = (new URLSearchParams(location.search).get("q") ?? "").slice(0, field.maxLength);
field.addEventListener("input", filter);
field.addEventListener("change", remember);
field.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !field.value) return;
  field.value = "";
  filter();
  remember();
});
box.hidden = false;
filter();
