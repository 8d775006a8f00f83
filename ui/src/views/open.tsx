// The view in which the reader chooses a cluster, if the server has none.
import { useEffect, useState } from "preact/hooks";

import { go, useRoute } from "../address.ts";
import { Fault, identify } from "../core/ask.ts";
import { list, policyNames, type View } from "../core/kept.ts";
import { having, parse, type Route } from "../core/route.ts";
import { follow, openText } from "../core/source.ts";
import type { Choice } from "../app.tsx";
import { Failed, Loading } from "../parts/states.tsx";

// useKept lists the snapshots that the server maintains, once more when the reader has entered a token, and opens the one that the address
// names, or the only one.
function useKept(token: string, route: Route, { onOpen, onPolicies }: Choice) {
  const [kept, setKept] = useState<readonly View[] | undefined>();
  const [fault, setFault] = useState<Fault | undefined>();
  const from = route.query["from"] ?? "";
  useEffect(() => {
    let gone = false;
    const pause = token === "" ? 0 : 300;
    const timer = setTimeout(() => {
      // A reader who may not ask which policies there are has the page's own.
      Promise.all([list(), policyNames().catch(() => [])]).then(
        ([snapshots, names]) => {
          if (!gone) {
            onPolicies(names);
            setKept(snapshots);
          }
        },
        () => {
          // A reader without a token may still open a file.
          if (!gone) {
            setKept(undefined);
          }
        },
      );
    }, pause);
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [token]);
  const only = kept?.length === 1 && kept[0]?.digest !== undefined ? (kept[0].name ?? "") : "";
  const wanted = kept === undefined ? "" : from === "" ? only : from;
  useEffect(() => {
    if (wanted === "") {
      return undefined;
    }
    let gone = false;
    follow(wanted).then(
      (opened) => {
        if (!gone) {
          onOpen(opened);
        }
      },
      (error: unknown) => {
        if (!gone) {
          setFault(error instanceof Fault ? error : new Fault("", String(error)));
        }
      },
    );
    return () => { gone = true; };
  }, [wanted]);
  return { kept: kept ?? [], fault, opening: wanted !== "" && fault === undefined };
}

export function OpenView(props: Choice) {
  const { onOpen } = props;
  const route = useRoute();
  const [token, setToken] = useState("");
  const live = useKept(token, route, props);
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
      {live.opening && <Loading what="Reading the cluster" />}
      {live.fault !== undefined && <Failed fault={live.fault} />}
      {live.kept.length > 0 && (
        <>
          <p>This server keeps {live.kept.length === 1 ? "a cluster" : "clusters"} up to date:</p>
          <ul class="plain" aria-label="Clusters of this server">
            {live.kept.map((view) => (
              <li key={view.name} class="job-row">
                <a class="button" href={having(route, { from: view.name ?? "" })}><bdi>{view.name}</bdi></a>
                {view.digest === undefined ? <span class="pill bad">not read yet</span> : view.complete === true ? null : <span class="pill warn">not complete</span>}
              </li>
            ))}
          </ul>
        </>
      )}
      <p>Drop a snapshot here, or choose a file. The page sends it to this server with each call; the server does not store it.</p>
      <p>
        <label class="button">
          Choose a file
          <input class="visually-hidden" type="file" accept=".json,application/json" onChange={(event) => take(event.currentTarget.files?.[0])} />
        </label>
      </p>
      <p class="note">Convert the output of kubectl to a snapshot:</p>
      <pre tabIndex={0}>apportion convert -f cluster.yaml -o json &gt; cluster.json</pre>
      <p>
        <label>
          Token, if this server requires one
          <input class="filter" type="password" autocomplete="off" onInput={(event) => {
            identify(event.currentTarget.value.trim());
            setToken(event.currentTarget.value.trim());
          }} />
        </label>
        <label>
          Name of a policy of this server, to use instead of a preset
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
