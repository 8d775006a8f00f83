// Questions of views: asked once however many parts of a view ask them, answered from memory where the answer is kept.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { Fault } from "./core/ask.ts";

// Asked is the state of a question: the newest answer, that to an earlier question while a new one is under way, or a fault.
export interface Asked<A> {
  readonly answer: A | undefined;
  readonly fault: Fault | undefined;
  readonly pending: boolean;
}

// Pace is how questions follow each other: by a pause in milliseconds in which the question may change, and then in place of the one that
// is under way; or one after the other, each the newest there is, so that answers keep coming while a slider is dragged.
export type Pace = number | "in turn";

const kept = new Map<string, unknown>();
const mostKept = 24;

// keep keeps an answer for when it is asked for.
export function keep(key: string, answer: unknown): void {
  kept.delete(key);
  kept.set(key, answer);
  for (const oldest of kept.keys()) {
    if (kept.size <= mostKept) {
      break;
    }
    kept.delete(oldest);
  }
}

interface Flight {
  readonly promise: Promise<unknown>;
  readonly abort: AbortController;
  users: number;
}

// Questions under way. A question whose answer is no longer needed is cancelled.
const flights = new Map<string, Flight>();

function join<A>(key: string, ask: (signal: AbortSignal) => Promise<A>): { promise: Promise<A>; leave: () => void } {
  let flight = flights.get(key);
  if (flight === undefined) {
    const abort = new AbortController();
    const promise = ask(abort.signal).then((answer) => {
      keep(key, answer);
      return answer;
    }).finally(() => {
      if (flights.get(key)?.abort === abort) {
        flights.delete(key);
      }
    });
    flight = { promise, abort, users: 0 };
    flights.set(key, flight);
  }
  const joined = flight;
  joined.users++;
  return {
    promise: joined.promise as Promise<A>,
    leave: () => {
      joined.users--;
      if (joined.users === 0 && flights.get(key) === joined) {
        flights.delete(key);
        joined.abort.abort();
      }
    },
  };
}

const faultOf = (error: unknown): Fault => (error instanceof Fault ? error : new Fault("", error instanceof Error ? error.message : String(error)));

// useAsked asks when the key changes. Without a key nothing is asked. An answer about another version of the cluster is never shown in
// place of one that is under way.
export function useAsked<A>(key: string | undefined, ask: (signal: AbortSignal) => Promise<A>, pace: Pace = 0, version = ""): Asked<A> {
  const [state, set] = useState<{ key?: string; fault?: Fault }>({});
  const last = useRef<{ key?: string; answer?: A; version: string }>({ version });
  const newest = useRef({ key, ask, version });
  newest.current = { key, ask, version };
  // Leaves the question that is under way.
  const leave = useRef<(() => void) | undefined>(undefined);
  const begin = (): void => {
    const { key: asked, ask: asking, version: about } = newest.current;
    if (asked === undefined || kept.has(asked)) {
      return;
    }
    const joined = join(asked, asking);
    const left = (): void => {
      leave.current = undefined;
      joined.leave();
    };
    const ended = (then: { fault?: Fault }): void => {
      if (leave.current === left) {
        leave.current = undefined;
        set({ key: asked, ...then });
        if (newest.current.key !== asked) {
          begin();
        }
      }
    };
    leave.current = left;
    joined.promise.then(
      (answer) => {
        if (leave.current === left) {
          last.current = { key: asked, answer, version: about };
        }
        ended({});
      },
      (error: unknown) => ended({ fault: faultOf(error) }),
    );
  };
  // The question is sent before what has changed is drawn.
  useLayoutEffect(() => {
    if (pace === "in turn" && leave.current !== undefined) {
      return undefined;
    }
    const timer = typeof pace === "number" && pace > 0 ? setTimeout(begin, pace) : undefined;
    if (timer === undefined) {
      begin();
    }
    return () => {
      clearTimeout(timer);
      if (pace !== "in turn") {
        leave.current?.();
      }
    };
  }, [key, pace]);
  useEffect(() => () => leave.current?.(), []);
  const answer = key === undefined ? undefined : (kept.get(key) as A | undefined);
  if (key !== undefined && answer !== undefined) {
    // An answer that was kept stays at hand as the one before the next.
    last.current = { key, answer, version };
    return { answer, fault: undefined, pending: false };
  }
  const current = state.key === key || last.current.key === key;
  const before = last.current.version === version ? last.current.answer : undefined;
  return { answer: key === undefined ? undefined : before, fault: state.key === key ? state.fault : undefined, pending: key !== undefined && !current };
}
