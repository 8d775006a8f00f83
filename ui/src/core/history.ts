// Since when jobs wait for what, and what queues held over time, as far as the server saw it.
import { call } from "./ask.ts";
import type { CauseIntervalJson, GetHistoryRequestJson, GetHistoryResponseJson, JobHistoryJson, QueueHistoryJson } from "./contract.ts";

// history asks about jobs and queues of a snapshot that the server maintains.
export const history = (request: GetHistoryRequestJson, signal?: AbortSignal): Promise<GetHistoryResponseJson> =>
  call<GetHistoryResponseJson>("GetHistory", request, signal);

// millis is a time of an answer in milliseconds.
export const millis = (ns: string | number | bigint | undefined): number => Number(ns ?? 0) / 1e6;

// clock writes a time: the time of the day, with the day unless it is today.
export function clock(at: number, now: number): string {
  const moment = new Date(at);
  const time = moment.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  return moment.toDateString() === new Date(now).toDateString() ? time : `${moment.toLocaleDateString("en-CA")} ${time}`;
}

// lasted writes a length of time in one or two units.
export function lasted(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 1) {
    return `${Math.floor(ms / 1000)} s`;
  }
  if (minutes < 60) {
    return `${minutes} min`;
  }
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

// Span is a part of a strip: a cause, or a time in which the job did not wait.
export interface Span {
  readonly from: number;
  readonly until: number;
  readonly lasts: boolean;
  readonly tone: number;
  readonly text: string;
}

// Tones of checks, by which causes have colours. The last one is for everything else, 0 for waiting in turn.
const tones = ["", "CHECK_KIND_ADMISSION", "CHECK_KIND_TASKS", "CHECK_KIND_QUEUE", "CHECK_KIND_SHARE", "CHECK_KIND_NODES", "CHECK_KIND_ORDER"];
export const otherTone = tones.length;
export const idle = -1;

function toneOf(one: CauseIntervalJson): number {
  if (one.verdict === "PENDING_VERDICT_IN_TURN") {
    return 0;
  }
  const tone = tones.indexOf(one.check ?? "-");
  return tone < 0 ? otherTone : tone;
}

// spans returns what a job waited for, the oldest first.
export function spans(job: JobHistoryJson): Span[] {
  const out: Span[] = [];
  for (const one of job.intervals ?? []) {
    const from = millis(one.from);
    const before = out.at(-1);
    if (before !== undefined && before.until < from) {
      out.push({ from: before.until, until: from, lasts: false, tone: idle, text: "did not wait" });
    }
    const merged = (one.merged ?? 0) > 0 ? " (mostly; older causes are merged)" : "";
    out.push({ from, until: millis(one.until), lasts: one.lasts === true, tone: toneOf(one), text: `${one.text ?? ""}${merged}` });
  }
  return out;
}

// reaches says how far back a history reaches.
export function reaches(h: GetHistoryResponseJson, now: number): string {
  const begins = clock(millis(h.begins), now);
  const last = h.gaps?.at(-1);
  const gap = last === undefined ? "" : `; not from ${clock(millis(last.from), now)} to ${clock(millis(last.until), now)}${(h.gaps?.length ?? 0) > 1 ? " and some times before" : ""}`;
  const from = h.begins === h.started ? ", when this server started" : h.started === undefined ? "" : `, from the file of this server, which started at ${clock(millis(h.started), now)}`;
  return `Known since ${begins}${from}${gap}.`;
}

// Point is a sample of a queue in one resource.
export interface Point {
  readonly from: number;
  readonly until: number;
  readonly allocated: number;
  readonly deserved: number;
}

// series returns the samples of a queue in a resource.
export function series(queue: QueueHistoryJson, dimension: string): Point[] {
  const d = (queue.dimensions ?? []).indexOf(dimension);
  return (queue.samples ?? []).map((s) => {
    const amount = d < 0 ? undefined : (s.amounts ?? []).find((a) => (a.dimension ?? 0) === d);
    return { from: millis(s.from), until: millis(s.until), allocated: Number(amount?.allocated ?? 0), deserved: Number(amount?.deserved ?? 0) };
  });
}
