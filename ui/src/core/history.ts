// Since when jobs wait for what, and what queues held over time, as far as the server saw it.
import { call } from "./ask.ts";
import type { CauseIntervalJson, GetHistoryRequestJson, GetHistoryResponseJson, JobHistoryJson, QueueHistoryJson } from "./contract.ts";
import { are, count, say } from "./say.ts";

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
    const from = millis(one.startTime);
    const before = out.at(-1);
    if (before !== undefined && before.until < from) {
      out.push({ from: before.until, until: from, lasts: false, tone: idle, text: say("didNotWait") });
    }
    const merged = (one.merged ?? 0) > 0 ? say("merged", { causes: are(one.merged ?? 0, "older cause") }) : "";
    out.push({ from, until: millis(one.endTime), lasts: one.lasts === true, tone: toneOf(one), text: `${one.text ?? ""}${merged}` });
  }
  return out;
}

// reaches says how far back a history reaches.
export function reaches(h: GetHistoryResponseJson, now: number): string {
  const at = (time: string | number | bigint | undefined): string => clock(millis(time), now);
  let known = say("known", { begins: at(h.begins) });
  if (h.started === h.begins) {
    known += say("knownStart");
  } else if (h.started !== undefined) {
    known += say("knownFile", { started: at(h.started) });
  }
  const [last, more] = [h.gaps?.at(-1), (h.gaps?.length ?? 0) - 1];
  if (last !== undefined) {
    known += say("knownGap", { from: at(last.startTime), until: at(last.endTime) }) + (more > 0 ? say("knownGaps", { times: count(more, "time") }) : "");
  }
  return `${known}.`;
}

// waited says since when a job waits, or from when until when it waited.
export function waited(job: JobHistoryJson, begins: string | number | bigint | undefined, now: number): string {
  const since = clock(millis(job.since), now) + (job.since === begins ? say("orLonger") : "");
  const values = { since, end: clock(millis(job.ended), now) };
  switch (job.state) {
    case "WAIT_STATE_ENDED":
      return say("waitedUntil", values);
    case "WAIT_STATE_GONE":
      return say("goneSince", values);
    default:
      return say("waitsSince", values);
  }
}

// queueSince says since when jobs of a queue wait and it is not served.
export function queueSince(queue: QueueHistoryJson, now: number): string {
  const waits = queue.waitingSince === undefined ? say("noneWaits") : say("jobsWait", { since: clock(millis(queue.waitingSince), now) });
  return queue.overusedSince === undefined ? waits : waits + say("unserved", { since: clock(millis(queue.overusedSince), now) });
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
    return { from: millis(s.startTime), until: millis(s.endTime), allocated: Number(amount?.allocated ?? 0), deserved: Number(amount?.deserved ?? 0) };
  });
}
