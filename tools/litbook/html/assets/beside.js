// A helper's name in code opens its definition beside the line, also when that stands on another page; Esc closes it.
// Where this cannot be, the link leads to the definition, and Back to the line.
addEventListener("click", async (e) => {
  const link = e.target.closest?.(".lb-c a"), root = document.body;
  if (!link || !root.showPopover || e.button || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  e.preventDefault();
  const url = new URL(link.href), there = url.pathname != location.pathname, at = link.getBoundingClientRect();
  const page = there ? await fetch(url).then((it) => it.text()).then((it) => new DOMParser().parseFromString(it, "text/html")).catch(() => null) : document;
  const found = page?.getElementById(decodeURIComponent(url.hash.slice(1)))?.closest(".lb-def");
  if (!found) return location.assign(url);
  document.getElementById("lb-beside")?.remove();
  const box = document.createElement("div"), head = document.createElement("p"), way = document.createElement("a"), shut = document.createElement("button");
  const words = JSON.parse(document.getElementById("lb-words").dataset.words).beside;
  const name = found.querySelector("summary"), code = found.querySelector(".lb-code").cloneNode(true);
  way.href = url;
  way.textContent = words.there;
  way.autofocus = true;
  shut.textContent = words.close;
  head.append(...name.cloneNode(true).childNodes, way, shut);
  code.querySelector(".lb-copy")?.remove();
  code.querySelectorAll("[id]").forEach((it) => it.removeAttribute("id"));
  code.querySelectorAll("a").forEach((it) => { it.href = new URL(it.getAttribute("href"), url); });
  for (const [key, value] of Object.entries({ id: "lb-beside", class: "md-typeset", popover: "", role: "dialog", "aria-label": name.textContent })) box.setAttribute(key, value);
  box.append(head, code);
  root.append(box);
  shut.onclick = () => box.hidePopover();
  const below = at.bottom + 6;
  box.style.top = `${scrollY + below}px`; // where it gets the focus, the page must not scroll
  box.showPopover();
  const { width, height } = box.getBoundingClientRect();
  box.style.left = `${scrollX + Math.max(8, Math.min(at.left, root.clientWidth - width - 8))}px`;
  box.style.top = `${scrollY + (below + height > innerHeight && at.top - height > 60 ? at.top - height - 6 : below)}px`;
});
