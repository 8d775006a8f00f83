// Questions of views. Several parts of a view that ask the same question share one call, and recent answers come from memory.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { Fault } from "./core/ask.ts";

// Asked is the state of a question: the newest answer, which may belong to an earlier question while a new one is in progress, or a fault.
export interface Asked<A> {
  readonly answer: A | undefined;
  readonly fault: Fault | undefined;
  readonly pending: boolean;
}

// Pace selects when a changed question is sent: after a pause in milliseconds, cancelling the one in progress; or when the one in progress
// is answered, so that answers keep arriving while a slider is dragged.
export type Pace = number | "in turn";

const kept = new Map<string, unknown>();
const mostKept = 24;

// keep stores an answer for later questions.
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

// Questions in progress. A question whose answer is no longer needed is cancelled.
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

// useAsked asks when the key changes. Without a key it does not ask. While a question is in progress, it never shows an answer about
// another version of the cluster.
export function useAsked<A>(key: string | undefined, ask: (signal: AbortSignal) => Promise<A>, pace: Pace = 0, version = ""): Asked<A> {
  const [state, set] = useState<{ key?: string; fault?: Fault }>({});
  const last = useRef<{ key?: string; answer?: A; version: string }>({ version });
  const newest = useRef({ key, ask, version });
  newest.current = { key, ask, version };
  // Cancels the question in progress.
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
  // The question is sent before the changes are drawn.
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
    // An answer from memory is also shown while the next question is in progress.
    last.current = { key, answer, version };
    return { answer, fault: undefined, pending: false };
  }
  const current = state.key === key || last.current.key === key;
  const before = last.current.version === version ? last.current.answer : undefined;
  return { answer: key === undefined ? undefined : before, fault: state.key === key ? state.fault : undefined, pending: key !== undefined && !current };
}
