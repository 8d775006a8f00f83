// Whether the quanta of a division went to the smallest signposts.

// Awarded is what a child got in a division, its weight, start, ceiling and base.
export interface Awarded {
  readonly e: number;
  readonly w: bigint;
  readonly s: number;
  readonly top: number;
  readonly z: number;
}

// A signpost is a fraction; a rank breaks ties.
type Signpost = readonly [numerator: bigint, denominator: bigint, rank: number];

function compare(a: Signpost, b: Signpost): number {
  const d = a[0] * b[1] - b[0] * a[1];
  return d < 0n ? -1 : d > 0n ? 1 : a[2] - b[2];
}

// award returns the last signpost awarded, as a fraction in lowest terms, and says if a quantum went to a later signpost than one that was
// refused.
export function award(rows: readonly Awarded[]): { misplaced: string | undefined; level: string } {
  let last: Signpost | undefined;
  let next: Signpost | undefined;
  rows.forEach((r, rank) => {
    if (r.w > 0n && r.e > r.s) {
      const post: Signpost = [2n * BigInt(r.e - r.z) - 1n, 2n * r.w, rank];
      last = last === undefined || compare(post, last) > 0 ? post : last;
    }
    if (r.w > 0n && r.e < r.top) {
      const post: Signpost = [2n * BigInt(r.e - r.z) + 1n, 2n * r.w, rank];
      next = next === undefined || compare(post, next) < 0 ? post : next;
    }
  });
  const level = last === undefined ? "" : reduced(last[0], last[1]);
  if (last !== undefined && next !== undefined && compare(last, next) > 0) {
    return { misplaced: `a quantum of child ${last[2]} belongs to child ${next[2]}`, level };
  }
  return { misplaced: undefined, level };
}

// reduced is a positive fraction in lowest terms.
function reduced(numerator: bigint, denominator: bigint): string {
  let [a, b] = [numerator < 0n ? -numerator : numerator, denominator];
  while (b !== 0n) {
    [a, b] = [b, a % b];
  }
  const by = a === 0n ? 1n : a;
  return `${numerator / by}/${denominator / by}`;
}
