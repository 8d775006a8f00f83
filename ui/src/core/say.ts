// Texts that the command line says too, from one table.
import type { ExplanationJson } from "./contract.ts";
import { words } from "./words.ts";

export type Name = keyof typeof words;

// say returns the words of a name with values in place of what is in braces.
export const say = (name: Name, values: Record<string, string> = {}): string =>
  words[name].replace(/\{(\w+)\}/g, (braces, key: string) => values[key] ?? braces);

// word says a value of the contract; undefined: there are no words for it.
export const word = (value: string | undefined): string | undefined => (words as Record<string, string>)[value ?? ""];

// plain writes a value of one of the contract's enums as people do: in turn for PENDING_VERDICT_IN_TURN.
export const plain = (value: string | undefined, prefix: string): string => (value ?? "").replace(prefix, "").replaceAll("_", " ").toLowerCase();

// count is a number with a noun, are the same with the verb.
export const count = (n: number, noun: string): string => `${n.toLocaleString("en-US")} ${noun}${n === 1 ? "" : "s"}`;
export const are = (n: number, noun: string): string => `${count(n, noun)} ${n === 1 ? "is" : "are"}`;

// fares says in a few words how a job fares.
export function fares(e: ExplanationJson): string {
  const blocking = e.blocking === undefined ? undefined : e.findings?.[e.blocking];
  if (blocking?.nodes?.[0]?.free) return say("waitsForNode");
  return (e.verdict === "PENDING_VERDICT_BLOCKED" ? word(blocking?.check) : undefined) ?? word(e.verdict) ?? say("PENDING_VERDICT_BLOCKED");
}
