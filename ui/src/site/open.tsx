// The view in which the reader gives the page without a server a cluster.
import { useEffect, useRef, useState } from "preact/hooks";

import { go, useRoute } from "../address.ts";
import type { Choice } from "../app.tsx";
import { Fault } from "../core/ask.ts";
import { format, start } from "../core/route.ts";
import { Failed } from "../parts/states.tsx";
import { about, openFiles, openSample, type Found, type Site } from "./engine.ts";
import { cluster as packed } from "./fragment.ts";
import type { Progress } from "./program.ts";

// Files that were dropped onto another view.
let dropped: readonly File[] | undefined;

// takeDrops makes the whole page take files that are dropped onto it.
export function takeDrops(): void {
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    const files = [...(event.dataTransfer?.files ?? [])];
    if (files.length > 0) {
      // A history that is dropped onto the view that rehearses one is for that view.
      if (document.getElementById("rehearse-title") !== null && files.every((file) => /\.csv(\.gz)?$/i.test(file.name))) {
        dispatchEvent(new CustomEvent("trace", { detail: files[0] }));
        return;
      }
      dropped = files;
      if (location.hash === "#/open") {
        dispatchEvent(new Event("dropped"));
      } else {
        go("#/open");
      }
    }
  });
}

interface State {
  readonly doing?: string | undefined;
  readonly part?: number | undefined;
  readonly fault?: Fault | undefined;
}

// useOpening opens one cluster at a time; what was being opened before is cancelled.
function useOpening(onOpen: Choice["onOpen"]) {
  const [state, set] = useState<State>({});
  const running = useRef<AbortController | undefined>(undefined);
  const begin = async (what: (signal: AbortSignal, progress: Progress) => Promise<Found>, then: string): Promise<void> => {
    running.current?.abort();
    const abort = new AbortController();
    running.current = abort;
    set({ doing: "Starting" });
    try {
      const { opened, policies } = await what(abort.signal, (doing, part) => {
        if (!abort.signal.aborted) {
          set({ doing, part });
        }
      });
      if (running.current === abort) {
        onOpen(opened, policies);
        go(then, true);
      }
    } catch (error) {
      if (running.current === abort && !abort.signal.aborted) {
        set({ fault: error instanceof Fault ? error : new Fault("", error instanceof Error ? error.message : String(error)) });
      }
    }
  };
  const cancel = (): void => {
    running.current?.abort();
    running.current = undefined;
    set({});
  };
  useEffect(() => cancel, []);
  return { state, begin, cancel };
}

export function SiteOpenView({ onOpen }: Choice) {
  const route = useRoute();
  const { state, begin, cancel } = useOpening(onOpen);
  const [site, setSite] = useState<Site | undefined>();
  const [over, setOver] = useState(false);
  const from = route.query["from"] ?? "";
  // Where the address led before a cluster was there.
  const view = route.view === "open" ? start : route;
  const take = (files: readonly File[]): void => {
    const { from: _, ...query } = view.query;
    void begin((signal, progress) => openFiles(files, signal, progress), format(route.view === "open" ? start : { ...view, query }));
  };
  useEffect(() => {
    about().then(setSite, () => undefined);
    const look = (): void => {
      if (dropped !== undefined) {
        take(dropped);
        dropped = undefined;
      }
    };
    addEventListener("dropped", look);
    look();
    return () => removeEventListener("dropped", look);
  }, []);
  useEffect(() => {
    const sample = /^sample:(.+)$/.exec(from)?.[1];
    const data = /^data:(.+)$/.exec(from)?.[1];
    if (sample !== undefined) {
      void begin((signal, progress) => openSample(sample, signal, progress), format(view));
    } else if (data !== undefined) {
      void begin(async (signal, progress) => openFiles([await packed(data)], signal, progress), format(view));
    }
  }, [from]);
  return (
    <section
      class={over ? "panel open over" : "panel open"} aria-labelledby="open-title"
      onDragOver={() => setOver(true)} onDragLeave={() => setOver(false)} onDrop={() => setOver(false)}
    >
      <h1 id="open-title">Open a cluster</h1>
      <p>Drop the output of kubectl here, or choose files. Your browser reads them and decides by itself: nothing is sent anywhere.</p>
      <pre tabIndex={0}>kubectl get queues.scheduling.volcano.sh,podgroups.scheduling.volcano.sh,pods,nodes,priorityclasses -A -o yaml &gt; cluster.yaml</pre>
      <p>
        <label class="button">
          Choose files
          <input class="visually-hidden" type="file" multiple onChange={(event) => {
            const files = [...(event.currentTarget.files ?? [])];
            event.currentTarget.value = "";
            if (files.length > 0) {
              take(files);
            }
          }} />
        </label>
      </p>
      <p class="note">
        YAML or JSON, several files, .zip or .tar.gz of them, a snapshot of <code>apportion convert -o json</code>, objects of Kueue, and a volcano-scheduler.conf beside them.
      </p>
      {(site?.samples ?? []).map((sample) => (
        <p key={sample.name}>
          <a class="button" href={format({ ...start, query: { from: `sample:${sample.name}` } })}>Open the sample {sample.title}</a> <span class="note">{sample.about}</span>
        </p>
      ))}
      {state.doing !== undefined && (
        <div class="state" role="status">
          <p><span class="spinner" aria-hidden="true" /> {state.doing} {state.part !== undefined && <progress value={state.part} aria-label={state.doing} />}</p>
          <button type="button" onClick={cancel}>Cancel</button>
        </div>
      )}
      {state.fault !== undefined && <Failed fault={state.fault} />}
    </section>
  );
}
