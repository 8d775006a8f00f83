// The choice of a cluster, where the server shows none.
import { useState } from "preact/hooks";

import { Fault, identify } from "../core/ask.ts";
import { having, parse } from "../core/route.ts";
import { openText, type Opened } from "../core/source.ts";
import { go } from "../page.tsx";
import { Failed } from "../parts/states.tsx";

export function OpenView({ onOpen }: { onOpen: (opened: Opened) => void }) {
  const [fault, setFault] = useState<Fault | undefined>();
  const [over, setOver] = useState(false);
  const take = (file: File | undefined): void => {
    if (file === undefined) {
      return;
    }
    file.text().then(
      (text) => {
        try {
          onOpen(openText(file.name, text, Date.now()));
        } catch (error) {
          setFault(error instanceof Fault ? error : new Fault("", String(error)));
        }
      },
      () => setFault(new Fault("", `${file.name} cannot be read.`)),
    );
  };
  return (
    <section
      class={over ? "panel open over" : "panel open"} aria-labelledby="open-title"
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        take(event.dataTransfer?.files[0]);
      }}
    >
      <h1 id="open-title">Open a cluster</h1>
      <p>Drop a snapshot here, or choose a file. The page sends it to this server with each question; the server keeps nothing.</p>
      <p>
        <label class="button">
          Choose a file
          <input class="visually-hidden" type="file" accept=".json,application/json" onChange={(event) => take(event.currentTarget.files?.[0])} />
        </label>
      </p>
      <p class="note">Write a snapshot from what kubectl prints:</p>
      <pre tabIndex={0}>apportion convert -f cluster.yaml -o json &gt; cluster.json</pre>
      <p>
        <label>
          Token, if this server asks for one
          <input class="filter" type="password" autocomplete="off" onInput={(event) => identify(event.currentTarget.value.trim())} />
        </label>
        <label>
          Policy of this server to decide by, if not one of the usual ones
          <input
            class="filter" autocomplete="off" spellcheck={false}
            onInput={(event) => {
              const name = event.currentTarget.value.trim();
              go(having(parse(location.hash), { policy: name === "" ? "" : `server:${name}` }), true);
            }}
          />
        </label>
      </p>
      {fault !== undefined && <Failed fault={fault} />}
    </section>
  );
}
