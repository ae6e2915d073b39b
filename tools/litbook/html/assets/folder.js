/* A site in a folder, without a server: a link to a folder would list its files, and there are no workers.
   On a server a page with formulas asks for their font before it is drawn: no line moves when the font has come. */
if (location.protocol == "file:") {
  addEventListener("click", (e) => {
    const a = e.target.closest("a");
    if (a?.protocol == "file:" && a.pathname.endsWith("/")) a.pathname += "index.html";
  }, true);
  // The search's worker runs in a frame instead; what is sent before it is there waits.
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = this.frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = `<script src="${url}"></script>`;
      this.there = new Promise((done) => { frame.onload = done; });
      document.body.append(frame);
      addEventListener("message", (e) => {
        if (e.source === frame.contentWindow) this.dispatchEvent(new MessageEvent("message", { data: e.data }));
      });
    }
    postMessage(data) { this.there.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }))); }
  };
} else if ("formulas" in document.currentScript.dataset) {
  const href = new URL("math.woff2", document.currentScript.src);
  document.head.append(Object.assign(document.createElement("link"), { rel: "preload", as: "font", crossOrigin: "", href }));
}
