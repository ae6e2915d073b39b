// Without a server, a link to a folder would list its files.
if (location.protocol == "file:") addEventListener("click", (e) => {
  const a = e.target.closest("a");
  if (a?.protocol == "file:" && a.pathname.endsWith("/")) a.pathname += "index.html";
}, true);
