// Short texts of why jobs wait. The full sentences come from the server.
import type { CheckKindJson, CheckOutcomeJson, ExplainAnswerJson, ExplanationJson, PendingGroupJson, PendingKindJson } from "./contract.ts";

// causesOf returns the waiting jobs, each with its verdict and its blocking check, from the groups of an answer.
export function causesOf(answer: ExplainAnswerJson | undefined): ExplanationJson[] {
  return (answer?.groups ?? []).flatMap((group) => (group.jobs ?? []).map((job): ExplanationJson => {
    const e: ExplanationJson = { job };
    if (group.verdict !== undefined) {
      e.verdict = group.verdict;
    }
    if (group.check !== undefined) {
      e.blocking = 0;
      e.findings = [{ check: group.check }];
    }
    return e;
  }));
}

const checks: Record<string, string> = {
  CHECK_KIND_ADMISSION: "Admission",
  CHECK_KIND_TASKS: "Gang",
  CHECK_KIND_QUEUE: "Queue",
  CHECK_KIND_SHARE: "Share",
  CHECK_KIND_NODES: "Nodes",
  CHECK_KIND_ORDER: "Order",
  CHECK_KIND_CONSTRAINTS: "Constraints",
  CHECK_KIND_EVICTION: "Eviction",
};

// checkName returns the name of a check.
export const checkName = (check: CheckKindJson | undefined): string => checks[check ?? ""] ?? "Check";

const headlines: Record<string, string> = {
  CHECK_KIND_ADMISSION: "Waits to be admitted.",
  CHECK_KIND_TASKS: "Waits for its own tasks.",
  CHECK_KIND_QUEUE: "Its queue is not served.",
  CHECK_KIND_SHARE: "Its queue may not use that much.",
  CHECK_KIND_NODES: "Waits for room on the nodes.",
  CHECK_KIND_ORDER: "Waits behind other jobs.",
  CHECK_KIND_CONSTRAINTS: "Placement is not known.",
};

// headline describes the verdict in a few words.
export function headline(e: ExplanationJson): string {
  switch (e.verdict) {
    case "PENDING_VERDICT_IN_TURN":
      return "Next in turn.";
    case "PENDING_VERDICT_COMPLETE":
      return "Waits for nothing.";
    case "PENDING_VERDICT_UNDETERMINED":
      return "Not known for certain.";
  }
  const blocking = e.blocking === undefined ? undefined : e.findings?.[e.blocking];
  return headlines[blocking?.check ?? ""] ?? "Waits.";
}

// found returns what holds a job back, in one line: the check that blocks it or what is not known, and the constraints that are not judged.
export const found = (e: ExplanationJson): string =>
  (e.findings ?? []).filter((f, i) => i === e.blocking || f.check === "CHECK_KIND_CONSTRAINTS" || (e.blocking === undefined && f.outcome === "CHECK_OUTCOME_NOT_KNOWN"))
    .flatMap((f) => f.text ?? []).join("; ");

// rest returns the explanation without the job's name and the forecast, which are shown separately.
export function rest(e: ExplanationJson): string {
  const text = e.text ?? "";
  const [start] = parts(e);
  return unnamed(e, start !== "" && text.endsWith(` ${start}`) ? text.slice(0, -start.length - 1) : text);
}

// forecast returns when the job could start and what this depends on; undefined if the answer has no forecast.
export function forecast(e: ExplanationJson): { readonly start: string; readonly basis: string } | undefined {
  const [start, basis] = parts(e);
  return start === "" ? undefined : { start: unnamed(e, start), basis };
}

// parts returns the first sentence of the forecast, and the others. A full stop in the name of the job does not end a sentence.
function parts(e: ExplanationJson): readonly [string, string] {
  const text = e.forecast?.text ?? "";
  const name = nameOf(e);
  const end = text.indexOf(". ", text.startsWith(name) ? name.length : 0) + 1 || text.length;
  return [text.slice(0, end), text.slice(end).trim()];
}

const nameOf = (e: ExplanationJson): string => e.name ?? e.uid ?? "";

// unnamed replaces the job's name at the beginning of a text by It.
function unnamed(e: ExplanationJson, text: string): string {
  const name = nameOf(e);
  return name === "" || !text.startsWith(`${name} `) ? text : `It${text.slice(name.length)}`;
}

export interface Mark {
  readonly sign: string;
  readonly word: string;
  readonly tone: "good" | "bad" | "plain" | "doubt";
}

const marks: Record<string, Mark> = {
  CHECK_OUTCOME_PASSED: { sign: "✓", word: "passed", tone: "good" },
  CHECK_OUTCOME_FAILED: { sign: "✕", word: "failed", tone: "bad" },
  CHECK_OUTCOME_NOT_KNOWN: { sign: "?", word: "not known", tone: "doubt" },
};

// mark returns the sign of a check's outcome.
export const mark = (outcome: CheckOutcomeJson | undefined): Mark =>
  marks[outcome ?? ""] ?? { sign: "·", word: "noted", tone: "plain" };

// cause returns the cause of a group or of a kind of groups, as the beginning of a sentence.
export function cause(group: PendingGroupJson | PendingKindJson): string {
  const text = (group.text ?? "").replace(/^because /, "").replace(/^for (their|its) turn$/, "next in turn");
  return text === "" ? "another cause" : text;
}
