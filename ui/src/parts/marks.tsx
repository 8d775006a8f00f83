// Marks of what a new version of the cluster changed.
import { useEffect, useRef, useState } from "preact/hooks";

import { isolated } from "../core/isolate.ts";
import { marksOf, saidMarks, unmarked, type Marks } from "../core/marks.ts";
import { usePage } from "../page.tsx";
import { Sentence } from "./sentence.tsx";

// shownFor is the time in milliseconds for which marks are shown, unless another version comes before.
const shownFor = 20_000;

// useMarks returns what the newest version changed of rows: what each says, by name; undefined: it is not known yet. Rows of another kind,
// such as those of another resource, are not compared.
export function useMarks(kind: string, rows: ReadonlyMap<string, string> | undefined): Marks {
  const { opened } = usePage();
  const last = useRef<{ kind: string; digest: string; rows: ReadonlyMap<string, string> }>();
  const [marks, set] = useState(unmarked);
  useEffect(() => {
    if (rows === undefined) {
      return;
    }
    const before = last.current;
    last.current = { kind, digest: opened.digest, rows };
    if (before === undefined || before.kind !== kind) {
      set(unmarked);
    } else if (before.digest !== opened.digest) {
      set(marksOf(before.rows, rows));
    }
  }, [kind, rows, opened.digest]);
  useEffect(() => {
    if (marks === unmarked) {
      return undefined;
    }
    const over = setTimeout(() => set(unmarked), shownFor);
    return () => clearTimeout(over);
  }, [marks]);
  return marks;
}

// Changes says in a line what the newest version changed.
export function Changes({ marks }: { marks: Marks }) {
  return <p class="changes" role="status"><Sentence text={saidMarks(marks)} /></p>;
}

// Changed marks a row that is new or changed.
export function Changed({ marks, name }: { marks: Marks; name: string }) {
  const mark = marks.rows.get(name);
  if (mark === undefined) {
    return null;
  }
  return mark.was === undefined
    ? <span class="mark" role="img" aria-label="new" title="new">+</span>
    : <span class="mark" role="img" aria-label="changed" title={isolated(`before: ${mark.was}`)}>~</span>;
}
