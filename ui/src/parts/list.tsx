// Long lists that draw only their visible rows. All rows of a list have the same height. The arrow keys, Home and End move between the
// links of rows.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

interface Props {
  readonly label: string;
  readonly count: number;
  // Height of a row in pixels.
  readonly height: number;
  // Role of the list and of its rows: a list of items, or rows of a table whose header is elsewhere.
  readonly role?: "list" | "rowgroup";
  readonly row: (index: number) => ComponentChildren;
  readonly rowKey: (index: number) => string;
  // The row that is visible at first.
  readonly first?: number;
}

// Number of rows drawn above and below the visible ones, and before the size is known.
const spare = 8;
const unmeasured = 30;

export function List(p: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState<[number, number]>([0, unmeasured]);
  const wanted = useRef<number | undefined>(undefined);
  const look = (): void => {
    const element = box.current;
    if (element === null) {
      return;
    }
    const from = Math.max(0, Math.floor(element.scrollTop / p.height) - spare);
    const to = Math.ceil((element.scrollTop + element.clientHeight) / p.height) + spare;
    setRange((old) => (old[0] === from && old[1] === to ? old : [from, to]));
  };
  useLayoutEffect(look, [p.count, p.height]);
  useEffect(() => {
    const element = box.current;
    if (element === null || typeof ResizeObserver === "undefined") {
      return undefined;
    }
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => observer.disconnect();
  });
  useLayoutEffect(() => {
    if (p.first !== undefined && p.first >= 0 && box.current !== null) {
      const top = p.first * p.height;
      if (top < box.current.scrollTop || top + p.height > box.current.scrollTop + box.current.clientHeight) {
        box.current.scrollTop = Math.max(0, top - box.current.clientHeight / 3);
        look();
      }
    }
  }, [p.first]);
  useLayoutEffect(() => {
    if (wanted.current !== undefined) {
      const link = box.current?.querySelector<HTMLElement>(`[data-row="${wanted.current}"] a, [data-row="${wanted.current}"] button`);
      if (link) {
        wanted.current = undefined;
        link.focus({ preventScroll: true });
      }
    }
  });
  const move = (event: JSX.TargetedKeyboardEvent<HTMLDivElement>): void => {
    const at = Number((event.target as HTMLElement).closest<HTMLElement>("[data-row]")?.dataset["row"] ?? NaN);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: p.count - 1 }[event.key];
    const element = box.current;
    if (to === undefined || Number.isNaN(at) || element === null || event.altKey || event.ctrlKey || event.metaKey) {
      return;
    }
    event.preventDefault();
    const index = Math.min(p.count - 1, Math.max(0, to));
    wanted.current = index;
    if (index * p.height < element.scrollTop) {
      element.scrollTop = index * p.height;
    } else if ((index + 1) * p.height > element.scrollTop + element.clientHeight) {
      element.scrollTop = (index + 1) * p.height - element.clientHeight;
    }
    look();
    // Draws the rows again, even if this row is drawn already, so that it gets the focus.
    setRange((old) => [old[0], old[1]]);
  };
  const [from, to] = [Math.min(range[0], p.count), Math.min(range[1], p.count)];
  const rows: ComponentChildren[] = [];
  const role = p.role ?? "list";
  for (let i = from; i < to; i++) {
    rows.push(
      <div
        key={p.rowKey(i)} class="list-row" data-row={i} role={role === "list" ? "listitem" : "row"}
        {...(role === "list" ? { "aria-posinset": i + 1, "aria-setsize": p.count } : { "aria-rowindex": i + 2 })}
        style={{ transform: `translateY(${i * p.height}px)`, height: `${p.height}px` }}
      >
        {p.row(i)}
      </div>,
    );
  }
  return (
    <div class="list" role={role} ref={box} onScroll={look} onKeyDown={move} aria-label={p.label} tabIndex={rows.length > 0 ? 0 : -1}>
      <div class="list-all" role="presentation" style={{ height: `${p.count * p.height}px` }}>
        {rows}
      </div>
    </div>
  );
}
