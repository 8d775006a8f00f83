// The tabs that select the resource of bars and maps.
import { labelOf } from "../core/amount.ts";
import { having } from "../core/route.ts";
import { usePage } from "../page.tsx";

export function Resources() {
  const { cluster, dimension, route } = usePage();
  const few = 6;
  const offered = cluster.offered();
  const shown = offered.slice(0, few);
  if (!shown.includes(dimension)) {
    shown.push(dimension);
  }
  return (
    <nav class="tabs" aria-label="Resource">
      {shown.map((d) => {
        const name = cluster.dimensions[d] ?? "";
        return (
          <a key={name} href={having(route, { r: name })} aria-current={d === dimension ? "true" : undefined} title={name}>
            {labelOf(name)}
          </a>
        );
      })}
    </nav>
  );
}
