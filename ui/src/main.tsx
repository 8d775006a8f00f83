// The page of a server.
import { render } from "preact";

import { App } from "./app.tsx";
import { open } from "./core/source.ts";
import { OpenView } from "./views/open.tsx";

const root = document.getElementById("app");
if (root !== null) {
  render(<App home={{ open, OpenView }} />, root);
}
