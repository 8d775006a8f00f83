// Two states of a cluster side by side: what queues deserve and which jobs wait, before and after.
import { textOf, unitFor } from "./amount.ts";
import type { ExplainAnswerJson, ExplanationJson } from "./contract.ts";
import { causesOf } from "./explain.ts";
import { say } from "./say.ts";
import { numbers, type Numbers, type Row } from "./shares.ts";

// Pair is one queue in both.
export interface Pair {
  readonly index: number;
  readonly name: string;
  readonly before: Numbers | undefined;
  readonly after: Numbers | undefined;
  // The change of what it deserves.
  readonly change: number;
}

// pairs returns all queues that take part in one of the two states, those with the greatest change first.
export function pairs(before: readonly Row[], after: readonly Row[], dimension: number): Pair[] {
  const of = (all: readonly Row[]): Map<number, Row> => new Map(all.map((row) => [row.index, row]));
  const [was, is] = [of(before), of(after)];
  // A queue that has children in only one of the states, or has no amounts, is not compared.
  const idle = (row: Row): boolean => row.children.length > 0 || (numbers(row.share, dimension).deserved === 0 && numbers(row.share, dimension).allocated === 0);
  const order = [...new Set([...is.keys(), ...was.keys()])].filter((index) => {
    const [a, b] = [was.get(index), is.get(index)];
    return (a !== undefined && b !== undefined) || !idle(a ?? (b as Row));
  });
  const out = order.map((index): Pair => {
    const [a, b] = [was.get(index), is.get(index)];
    const [x, y] = [a && numbers(a.share, dimension), b && numbers(b.share, dimension)];
    const change = (y?.deserved ?? 0) - (x?.deserved ?? 0);
    return { index, name: b?.name ?? a?.name ?? "", before: x, after: y, change: Math.abs(change) > 1e-6 * Math.max(1, x?.deserved ?? 0) ? change : 0 };
  });
  return out.sort((a, b) => Math.abs(b.change) - Math.abs(a.change) || a.index - b.index);
}

// Turn is a job whose cause of waiting changes, ends or begins.
export interface Turn {
  readonly job: number;
  readonly before: ExplanationJson | undefined;
  readonly after: ExplanationJson | undefined;
}

const causeOf = (e: ExplanationJson | undefined): string =>
  e === undefined ? "" : `${e.verdict ?? ""} ${e.blocking === undefined ? "" : (e.findings?.[e.blocking]?.check ?? "")}`;

const rank = (e: ExplanationJson | undefined): number => {
  switch (e?.verdict) {
    case undefined:
    case "PENDING_VERDICT_COMPLETE":
      return 0;
    case "PENDING_VERDICT_IN_TURN":
      return 1;
    case "PENDING_VERDICT_UNDETERMINED":
      return 2;
    default:
      return 3;
  }
};

// better reports whether no known cause blocks a job any longer, and worse whether a cause blocks it only after the change.
export const better = (t: Turn): boolean => rank(t.after) < 2 && rank(t.before) >= 2;

export const worse = (t: Turn): boolean => rank(t.after) >= 2 && rank(t.before) < 2;

// turns returns the jobs whose cause differs: first those that are no longer blocked, then those that are newly blocked.
export function turns(before: ExplainAnswerJson | undefined, after: ExplainAnswerJson | undefined): Turn[] {
  const of = (answer: ExplainAnswerJson | undefined): Map<number, ExplanationJson> => new Map(causesOf(answer).map((e) => [e.job ?? 0, e]));
  const [was, is] = [of(before), of(after)];
  const out: Turn[] = [];
  for (const job of new Set([...was.keys(), ...is.keys()])) {
    const turn = { job, before: was.get(job), after: is.get(job) };
    if (causeOf(turn.before) !== causeOf(turn.after)) {
      out.push(turn);
    }
  }
  const kind = (t: Turn): number => (better(t) ? 0 : worse(t) ? 1 : 2);
  return out.sort((a, b) => kind(a) - kind(b) || a.job - b.job);
}

// saidChange describes the changes in a sentence.
export function saidChange(all: readonly Pair[], dimension: string, moved: readonly Turn[]): string {
  const changed = all.filter((p) => p.change !== 0);
  const most = 3;
  const unit = unitFor(dimension, changed.slice(0, most).map((p) => p.change));
  const one = (p: Pair, i: number): string => `${p.name} ${i === 0 ? "deserves " : ""}${textOf(dimension, Math.abs(p.change), unit)} ${p.change > 0 ? "more" : "less"}`;
  const parts = changed.slice(0, most).map(one);
  if (changed.length > most) {
    const more = changed.length - most;
    parts.push(`and ${more} more ${more === 1 ? "queue changes" : "queues change"}`);
  }
  const sentence = parts.length === 0 ? say("noChange") : parts.join(", ");
  const count = (n: number, text: string): string => `${n} ${n === 1 ? "job" : "jobs"} ${text}`;
  const [up, down] = [moved.filter(better).length, moved.filter(worse).length];
  const jobs = [up > 0 ? count(up, "would no longer be blocked") : "", down > 0 ? count(down, "would be newly blocked") : ""].filter((t) => t !== "");
  return `${sentence[0]?.toUpperCase()}${sentence.slice(1)}; ${jobs.length === 0 ? "the same jobs would be blocked" : jobs.join(", ")}.`;
}
