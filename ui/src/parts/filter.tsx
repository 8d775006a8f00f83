// A field that filters a list. The address contains its text.
import { go } from "../address.ts";
import { having } from "../core/route.ts";
import { usePage } from "../page.tsx";

export function Filter({ label, part = "q" }: { label: string; part?: string }) {
  const { route } = usePage();
  return (
    <input
      class="filter" type="search" placeholder={label} aria-label={label} value={route.query[part] ?? ""} spellcheck={false} autocomplete="off"
      onInput={(event) => go(having(route, { [part]: event.currentTarget.value }), true)}
    />
  );
}
