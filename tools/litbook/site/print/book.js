// All pages of the site as one document, in the order of its navigation: a title, the contents, the pages.
// `choices.json` says which these are, what to leave out, and the pages on which things begin, as far as they are known.
(async () => {
  const got = async (path) => {
    const answer = await fetch(path);
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
    return answer;
  };
  const read = async (path) => new DOMParser().parseFromString(await (await got(path)).text(), "text/html");
  const choices = await (await got("/litbook-print/choices.json")).json();
  const home = await read("/index.html");
  const first = document.head.firstChild; // the site's styles in the site's order, before those of the book
  for (const style of home.querySelectorAll("link[rel=stylesheet]")) {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = new URL(style.getAttribute("href"), location.origin + "/").href;
    document.head.insertBefore(link, first);
  }
  document.head.append(document.querySelector("style"));
  document.documentElement.lang = home.documentElement.lang;

  const pages = new Map();
  for (const path of choices.menu) {
    const article = (await read(path)).querySelector("article.md-content__inner");
    if (article && !article.querySelector(".lb-workbook, .lb-questions")) pages.set(path, { article, name: `p${pages.size + 1}` });
  }

  const make = (tag, text, attributes = {}) => {
    const element = document.createElement(tag);
    element.textContent = text;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const title = make("div", "", { class: "lbp-title" });
  title.append(make("h1", choices.title));
  const contents = make("nav", "", { class: "lbp-contents" });
  contents.append(make("h1", choices.contents));
  const list = contents.appendChild(make("ol", ""));
  const enter = (text, name, section) => {
    const item = list.appendChild(make("li", "", { class: section ? "lbp-section" : "lbp-chapter" }));
    item.append(make("a", text, { href: `#${name}` }), make("span", choices.pages[name] ?? "\u2007\u2007"));
  };
  document.body.append(title, contents);

  for (const [path, { article, name }] of pages) {
    const base = new URL(path, location.origin);
    for (const element of article.querySelectorAll("script, form, .headerlink, .lb-player, .md-content__button")) element.remove();
    if (choices.asides === "out") {
      for (const heading of article.querySelectorAll(".lb-off")) heading.remove();
      for (const aside of article.querySelectorAll("details.lb-aside")) aside.remove();
    }
    for (const details of article.querySelectorAll("details.lb-aside, details.lb-waits")) details.open = true;
    // Names are unique within a page; those within a drawing are made of what it shows, and may stand twice.
    for (const element of article.querySelectorAll("[id]")) if (!element.closest("svg")) element.id = `${name}-${element.id}`;
    for (const kind of ["for", "aria-labelledby", "aria-describedby"])
      for (const element of article.querySelectorAll(`[${kind}]`))
        element.setAttribute(kind, element.getAttribute(kind).split(/\s+/).map((one) => `${name}-${one}`).join(" "));
    for (const link of article.querySelectorAll("a[href]")) {
      if (!URL.canParse(link.getAttribute("href"), base)) continue; // a browser follows it nowhere, either
      const url = new URL(link.getAttribute("href"), base);
      if (url.origin !== location.origin) continue;
      const page = pages.get(url.pathname);
      if (page) link.setAttribute("href", url.hash ? `#${page.name}-${url.hash.slice(1)}` : `#${page.name}`);
      else if (choices.site) link.href = new URL(url.pathname.slice(1) + url.hash, choices.site).href;
      else link.removeAttribute("href");
    }
    for (const picture of article.querySelectorAll("img[src]")) {
      picture.src = new URL(picture.getAttribute("src"), base).href;
      picture.removeAttribute("loading");
    }
    // A part of a lecture follows the one before it; all else begins on a page of its own.
    const follows = path.split("/").length > 4;
    const page = make("section", "", { class: `lbp-page${follows ? "" : " lbp-chapter-page"} md-content__inner`, id: name });
    page.append(...article.childNodes);
    document.body.append(page);
    enter(page.querySelector("h1")?.textContent.trim() || path, name, false);
    for (const heading of page.querySelectorAll("h2[id]")) enter(heading.textContent.trim(), heading.id, true);
  }
  const end = make("p", ".", { class: "lbp-end", id: "lbp-end" });
  contents.append(make("a", "", { href: "#lbp-end" }));
  document.body.append(end);
  await document.fonts.ready;
  await Promise.all([...document.images].map((picture) => picture.decode().catch(() => {})));
})();
