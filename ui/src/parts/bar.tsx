// The bar of a queue: five numbers at a glance.
import { textOf, unitFor, type Unit } from "../core/amount.ts";
import type { Numbers } from "../core/shares.ts";
import { isolated } from "../core/isolate.ts";

interface Props {
  readonly name: string;
  readonly dimension: string;
  readonly numbers: Numbers;
  // The amount that the whole width represents.
  readonly scale: number;
  // The unit of amounts of other bars and columns beside it.
  readonly unit?: Unit | undefined;
}

// percent is a part of the width. An amount without limit takes all of it.
const percent = (amount: number, scale: number): string => `${Number.isFinite(amount) ? Math.min(100, Math.max(0, (100 * amount) / scale)).toFixed(3) : "100"}%`;

// amountsOf lists the amounts that a bar shows.
export const amountsOf = (n: Numbers): number[] => [n.allocated, n.deserved, n.request, n.guarantee, n.limit];

// spoken describes the bar for screen readers.
export function spoken({ name, dimension, numbers: n, unit = unitFor(dimension, amountsOf(n)) }: Omit<Props, "scale">): string {
  const of = (amount: number): string => textOf(dimension, amount, unit);
  return (
    `${name}, ${dimension}: has ${of(n.allocated)}, deserves ${of(n.deserved)}, asks for ${of(n.request)}, ` +
    `is guaranteed ${of(n.guarantee)}, may have at most ${of(n.limit)}`
  );
}

export function QueueBar(props: Props) {
  const { numbers: n } = props;
  const scale = props.scale > 0 && Number.isFinite(props.scale) ? props.scale : 1;
  const entitled = Math.min(n.allocated, n.deserved);
  const wanted = Math.max(0, Math.min(n.request, scale) - n.allocated);
  const label = spoken(props);
  return (
    <svg class="bar" role="img" aria-label={label}>
      <title>{isolated(label)}</title>
      <rect class="bar-track" x="0" y="2" width={percent(n.limit, scale)} height="18" rx="3" />
      {wanted > 0 && <rect class="bar-wanted" x={percent(n.allocated, scale)} y="2" width={percent(wanted, scale)} height="18" rx="2" />}
      {wanted > 0 && (
        <rect fill="url(#hatch)" x={percent(n.allocated, scale)} y="2" width={percent(wanted, scale)} height="18" rx="2" />
      )}
      <rect class="bar-has" x="0" y="2" width={percent(entitled, scale)} height="18" rx="3" />
      {n.borrowed > 0 && <rect class="bar-borrowed" x={percent(n.deserved, scale)} y="2" width={percent(n.borrowed, scale)} height="18" rx="3" />}
      {n.guarantee > 0 && <rect class="bar-guarantee" x="0" y="22.5" width={percent(n.guarantee, scale)} height="3" rx="1.5" />}
      {n.deserved > 0 && (
        <svg x={percent(n.deserved, scale)} overflow="visible">
          <rect class="bar-deserves" x="-1" y="0" width="2" height="22" />
        </svg>
      )}
    </svg>
  );
}

// Patterns are defined once for all bars.
export const Patterns = () => (
  <svg class="patterns" aria-hidden="true" width="0" height="0">
    <defs>
      <pattern id="hatch" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect class="bar-hatch" width="3.5" height="8" />
      </pattern>
    </defs>
  </svg>
);

export const Legend = () => (
  <ul class="legend" aria-label="What the bars show">
    <li><i class="key has" />has, within what it deserves</li>
    <li><i class="key borrowed" />borrowed</li>
    <li><i class="key wanted" />wants more</li>
    <li><i class="key deserves" />deserves</li>
    <li><i class="key guarantee" />guaranteed</li>
    <li><i class="key track" />may have at most</li>
  </ul>
);
