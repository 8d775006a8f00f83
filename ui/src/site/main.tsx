// The page without a server: the engine runs in the browser.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";

import { App } from "../app.tsx";
import { sendBy } from "../core/ask.ts";
import { rough } from "../core/duration.ts";
import { about, engine, transport } from "./engine.ts";
import { SiteOpenView, takeDrops } from "./open.tsx";
import { RehearseView } from "./rehearse.tsx";

// Beside shows how to open another cluster and, while a question takes long, how to cancel it.
function Beside() {
  const [seconds, set] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => set(engine.since === 0 ? 0 : Math.floor((performance.now() - engine.since) / 1000)), 500);
    return () => clearInterval(timer);
  }, []);
  return (
    <>
      <a class="button home-link" href="index.html">Home</a>
      <a class="button" href="#/open">Open</a>
      {seconds > 0 && (
        <p class="head-note" role="status"><span class="spinner" aria-hidden="true" /> Deciding for {rough(seconds)} <button type="button" onClick={() => engine.cancel()}>Cancel</button></p>
      )}
    </>
  );
}

sendBy(transport);
takeDrops();
const root = document.getElementById("app");
if (root !== null) {
  root.textContent = "";
  render(<App home={{ open: async () => ({ policies: (await about()).policies, opened: undefined }), OpenView: SiteOpenView, Beside, Rehearse: RehearseView }} />, root);
}
