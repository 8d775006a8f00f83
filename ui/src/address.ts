// The address of what is shown, and how it changes.
import { useEffect, useMemo, useState } from "preact/hooks";

import { parse, type Route } from "./core/route.ts";

const changed = "addresschange";

// Milliseconds between two addresses that replace each other: browsers ignore more than a few each second, as while a slider is dragged.
const between = 250;

// An address that is shown already, and that the browser takes when the time has passed.
let ahead: string | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;
// What the browser made of the newest one that it took.
let taken = "";

// go shows another address. Replacing keeps the history short while something is typed or dragged.
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
  // If the browser has another address than the one that it took, the reader went elsewhere.
  if (ahead !== undefined && location.hash === taken) {
    history.replaceState(null, "", ahead);
    taken = location.hash;
    timer = setTimeout(write, between);
  }
  ahead = undefined;
}

// useRoute is the address that is shown.
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
