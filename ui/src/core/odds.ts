// When a job starts, by chance: what the server forecasts from the jobs that its ledger remembers.
import { call } from "./ask.ts";
import type { ForecastAnswerJson, ForecastRequestJson, ForecastResponseJson } from "./contract.ts";
import { rough } from "./duration.ts";

export const foreseen = (request: ForecastRequestJson, signal?: AbortSignal): Promise<ForecastResponseJson> =>
  call<ForecastResponseJson>("Forecast", request, signal);

// Mark is a chance of which the forecast states the time, in seconds from now.
export interface Mark {
  readonly chance: number;
  readonly at: number;
}

// Odds are the chances to have started by a time, as steps that rise to at most 1.
export interface Odds {
  readonly text: string;
  readonly label: string;
  readonly runs: number;
  readonly hindcasts: number;
  // until is the last time that is drawn, and later how many runs start after it.
  readonly until: number;
  readonly later: number;
  readonly steps: readonly Mark[];
  readonly marks: readonly Mark[];
}

// oddsOf returns what an answer says of chances; undefined if it says nothing, as without a history.
export function oddsOf(a: ForecastAnswerJson | undefined): Odds | undefined {
  const starts = (a?.starts ?? []).map(Number);
  const last = starts.at(-1);
  const runs = a?.runs ?? 0;
  if (a?.kind !== "FORECAST_KIND_ODDS" || last === undefined || runs === 0) {
    return undefined;
  }
  const marks = ([[0.1, a.p10], [0.5, a.p50], [0.9, a.p90]] as const).flatMap(([chance, at]) => (at === undefined ? [] : [{ chance, at: Number(at) }]));
  // The last tenth may be very late: it would leave no room for the others.
  const until = Math.max(60, a.p90 === undefined ? last : Math.min(last, 2 * Number(a.p90)));
  const steps: Mark[] = [];
  starts.forEach((at, i) => {
    if (at <= until) {
      steps.push({ at, chance: (i + 1) / runs });
    }
  });
  const said = marks.map((m) => `${percent(m.chance)} ${within(m.at)}`).join(", ");
  return {
    text: a.text ?? "", runs, hindcasts: a.hindcasts ?? 0, until, later: runs - steps.length, steps, marks,
    label: said === "" ? `Less than ${percent(0.1)} of ${runs} runs start in the time that was looked at` : `The chance to have started: ${said}`,
  };
}

export const percent = (chance: number): string => `${Math.round(100 * chance)} %`;

// within says by when something starts.
const within = (seconds: number): string => (seconds === 0 ? "at once" : `within ${rough(seconds)}`);
