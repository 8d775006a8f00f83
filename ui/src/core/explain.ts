// Short texts of why jobs wait. The full sentences come from the server.
import type { CheckOutcomeJson, ExplainAnswerJson, ExplanationJson } from "./contract.ts";

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
  CHECK_OUTCOME_FAILED: { sign: "✗", word: "failed", tone: "bad" },
  CHECK_OUTCOME_NOT_KNOWN: { sign: "?", word: "not known", tone: "doubt" },
};

// mark returns the sign of a check's outcome.
export const mark = (outcome: CheckOutcomeJson | undefined): Mark =>
  marks[outcome ?? ""] ?? { sign: "·", word: "noted", tone: "plain" };
