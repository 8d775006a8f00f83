// What differs between two versions of the cluster in what is shown of it, as pending --watch prints it: new, changed and gone rows.

// Mark is what differs in a row. was is what a changed row said before; a row without it is new.
export interface Mark {
  readonly was: string | undefined;
}

export interface Marks {
  readonly rows: ReadonlyMap<string, Mark>;
  readonly gone: readonly string[];
}

export const unmarked: Marks = { rows: new Map(), gone: [] };

// marksOf compares what rows say, by the name of each.
export function marksOf(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): Marks {
  const rows = new Map<string, Mark>();
  for (const [name, text] of after) {
    const was = before.get(name);
    if (was !== text) {
      rows.set(name, { was });
    }
  }
  return { rows, gone: [...before.keys()].filter((name) => !after.has(name)) };
}

// saidMarks counts what differs, and names what is gone; empty: nothing differs.
export function saidMarks(marks: Marks): string {
  const few = 3;
  const fresh = [...marks.rows.values()].filter((m) => m.was === undefined).length;
  const changed = marks.rows.size - fresh;
  const gone = marks.gone.slice(0, few).join(", ") + (marks.gone.length > few ? ` and ${marks.gone.length - few} more` : "");
  return [fresh > 0 ? `+ ${fresh} new` : "", changed > 0 ? `~ ${changed} changed` : "", gone === "" ? "" : `- gone: ${gone}`].filter((t) => t !== "").join("; ");
}
