// Which of several siblings comes first, for the check of a certificate.
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
