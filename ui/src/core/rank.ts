// Which of several siblings comes first, and which dimension of a queue is the dominant one, for the check of a certificate.
import type { QueueJson } from "./contract.ts";

// ranked sorts positions of queues by priority, age and the bytes of their names.
export function ranked(queues: readonly QueueJson[], positions: readonly number[]): number[] {
  const age = (i: number): number => Number(queues[i]?.createTime ?? 0) || Infinity;
  const bytes = new TextEncoder();
  const name = (i: number): string => [...bytes.encode(queues[i]?.name ?? "")].map((b) => String.fromCharCode(b)).join("");
  return [...positions].sort((a, b) => {
    const priority = (queues[b]?.priority ?? 0) - (queues[a]?.priority ?? 0);
    const [x, y] = [age(a), age(b)];
    const [m, n] = [name(a), name(b)];
    return priority || (x < y ? -1 : x > y ? 1 : 0) || (m < n ? -1 : m > n ? 1 : 0);
  });
}

// dominantOf returns the greatest part of the total that a queue holds, and the first dimension of which it holds that part: cpu and memory
// come before others, which are sorted by name. Undefined: it holds nothing.
export function dominantOf(
  dimensions: readonly string[], held: readonly number[], total: readonly number[], quanta: readonly number[],
): { greatest: number; dominant: number | undefined } {
  const part = (d: number): number => {
    const u = quanta[d] ?? 1;
    const all = Math.floor((total[d] ?? 0) / u) * u;
    return all > 0 ? (held[d] ?? 0) / all : 0;
  };
  const rank = (d: number): number => ["memory", "cpu"].indexOf(dimensions[d] ?? "");
  const name = (d: number): string => dimensions[d] ?? "";
  const ordered = [...dimensions.keys()].sort((a, b) => rank(b) - rank(a) || (name(a) < name(b) ? -1 : 1));
  const greatest = Math.max(0, ...ordered.map(part));
  return { greatest, dominant: greatest > 0 ? ordered.find((d) => part(d) === greatest) : undefined };
}
