// The page for addresses that lead nowhere: up to three pages whose addresses are much like the one asked for.
addEventListener("DOMContentLoaded", () => {
  const pairs = (path) => new Set([...path].map((letter, i) => letter + path[i + 1]));
  const asked = pairs(location.pathname.toLowerCase().replace(/(index)?\.\w+$/, "").replace(/\/?$/, "/"));
  const alike = (a) => {
    const its = pairs(a.pathname.toLowerCase()), both = [...its].filter((it) => asked.has(it)).length;
    return both / (its.size + asked.size - both);
  };
  const near = [...document.querySelectorAll(".lb-lost a")].map((a) => [alike(a), a]).filter(([like]) => like > 0.6);
  const said = document.getElementById("lb-near");
  near.sort(([one], [other]) => other - one).slice(0, 3).forEach(([, a], i) => said.append(i ? ", " : "", a.cloneNode(true)));
  said.append("?");
  said.hidden = !near.length;
});
