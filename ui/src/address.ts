// The address of the current view, and how it changes.
import { useEffect, useMemo, useState } from "preact/hooks";

import { parse, type Route } from "./core/route.ts";

const changed = "addresschange";

// Milliseconds between two replacements of the address: browsers ignore more than a few per second, as when a slider is dragged.
const between = 250;

// An address that the page shows already, and that the browser gets when the time has passed.
let ahead: string | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;
// The newest address that the browser got, as it reports it.
let taken = "";

// go shows another address. With `replace` the browser's history does not grow while the reader types or drags.
export function go(address: string, replace = false): void {
  if (!replace) {
    ahead = undefined;
    location.hash = address;
    return;
  }
  ahead = address;
  if (timer === undefined) {
    taken = location.hash;
    write();
  }
  dispatchEvent(new Event(changed));
}

function write(): void {
  timer = undefined;
  // If the browser has another address, the reader has navigated.
  if (ahead !== undefined && location.hash === taken) {
    history.replaceState(null, "", ahead);
    taken = location.hash;
    timer = setTimeout(write, between);
  }
  ahead = undefined;
}

// useRoute returns the current address.
export function useRoute(): Route {
  const [fragment, set] = useState(location.hash);
  useEffect(() => {
    const look = (): void => set(ahead ?? location.hash);
    const left = (): void => {
      ahead = undefined;
      look();
    };
    addEventListener(changed, look);
    addEventListener("hashchange", left);
    addEventListener("pagehide", write);
    return () => {
      removeEventListener(changed, look);
      removeEventListener("hashchange", left);
      removeEventListener("pagehide", write);
    };
  }, []);
  return useMemo(() => parse(fragment), [fragment]);
}
