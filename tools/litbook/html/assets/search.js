/* The search's worker: in front of Material's own, which it loads together with the index and searching.js for the first
   words that are asked for. In a folder, where browsers have no workers, it runs in a frame: see folder.js. */
(() => {
  "use strict";
  const [SETUP, READY, , RESULT] = [0, 1, 2, 3];
  const framed = typeof importScripts == "undefined", here = framed ? document.currentScript.src : location.href;
  const send = framed ? (message) => parent.postMessage(message, "*") : postMessage.bind(self);
  let setup, ready, passing = false, turn = Promise.resolve();

  const load = (path) => new Promise((done, failed) => {
    const url = new URL(path, here).href;
    if (!framed) return done(importScripts(url));
    document.head.append(Object.assign(document.createElement("script"), { src: url, onload: done, onerror: failed }));
  });

  // A message for Material's worker, and its answer.
  const ask = (type, data) => new Promise((done) => {
    self.postMessage = done;
    passing = true;
    dispatchEvent(new MessageEvent("message", { data: { type, data } }));
    passing = false;
  });

  addEventListener("message", (event) => {
    if (passing) return;
    event.stopImmediatePropagation();
    const { type, data } = event.data;
    if (type === SETUP) {
      setup = data;
      send({ type: READY });
    } else if (data.trim()) {
      turn = turn.then(async () => {
        await (ready ??= load("searching.js").then(() => self.__searching(setup, load, ask)));
        send(await self.__answer(data));
      }).catch(() => send({ type: RESULT, data: { items: [] } }));
    } else send({ type: RESULT, data: { items: [] } });
  });
})();
