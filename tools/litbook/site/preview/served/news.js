// Asks the preview for news: shows a new notice, and reloads where the page is another. Then it goes back to where the
// reader was, also on a page that has become longer or shorter.
(() => {
  const begun = document.currentScript.dataset.news;
  const key = "litbook-scroll:" + location.pathname;
  const kept = sessionStorage.getItem(key);
  sessionStorage.removeItem(key);
  if (kept !== null) {
    history.scrollRestoration = "manual";
    const back = () => scrollTo({ top: Number(kept), behavior: "instant" });
    back();
    addEventListener("load", back);
  }
  const ask = async (news) => {
    try {
      const answer = await fetch(`/livereload/${news}?${location.pathname}`), now = await answer.json();
      news = `${now.pages}-${now.notices}`;
      if (now.pages !== Number(begun.split("-")[0])) {
        sessionStorage.setItem(key, String(scrollY));
        return location.reload();
      }
      document.getElementById("litbook-running")?.remove();
      document.body.insertAdjacentHTML("afterbegin", now.notice);
    } catch { await new Promise((done) => setTimeout(done, 1000)); }
    ask(news);
  };
  if (document.readyState === "complete") ask(begun); else addEventListener("load", () => ask(begun));
})();
