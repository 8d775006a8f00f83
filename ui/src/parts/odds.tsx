// When a job starts, by chance, as a curve with its marks.
import { useAsked } from "../asked.ts";
import { rough } from "../core/duration.ts";
import { foreseen, oddsOf, percent, type Odds } from "../core/odds.ts";
import { inputOf, usePage } from "../page.tsx";
import { Sentence } from "./sentence.tsx";

const width = 600;
const height = 120;

// useOdds asks for the odds of a job; undefined: no past is remembered, or the answer is not there yet.
function useOdds(uid: string): Odds | undefined {
  const { opened, policy } = usePage();
  const key = opened.ledger === "" || opened.restricted ? undefined : `odds ${opened.ledger} ${uid} ${opened.digest} ${policy.name}`;
  const { answer } = useAsked(key, (signal) => foreseen({
    input: inputOf(opened, policy, undefined), forecast: { job: { names: [uid] }, runs: 100, seed: "1", arrivals: true, remembered: opened.ledger },
  }, signal), 0, opened.digest);
  return oddsOf(answer?.forecast);
}

// JobOdds draws when a waiting job starts, if the server remembers past jobs.
export function JobOdds({ uid }: { uid: string }) {
  const odds = useOdds(uid);
  return odds === undefined ? null : <OddsPlot odds={odds} />;
}

// OddsPlot draws the chance to have started by each time.
function OddsPlot({ odds }: { odds: Odds }) {
  const x = (at: number): number => (width * Math.min(at, odds.until)) / odds.until;
  const y = (chance: number): number => height - 2 - (height - 4) * chance;
  let curve = `M0 ${y(0)}`;
  let before = 0;
  for (const step of odds.steps) {
    curve += `L${x(step.at).toFixed(1)} ${y(before).toFixed(1)}L${x(step.at).toFixed(1)} ${y(step.chance).toFixed(1)}`;
    before = step.chance;
  }
  curve += `L${width} ${y(before).toFixed(1)}`;
  return (
    <section class="odds" aria-labelledby="job-odds">
      <h2 id="job-odds">When it starts, by chance</h2>
      <p class="forecast"><Sentence text={odds.text} /></p>
      <figure class="spark odds">
        <svg role="img" aria-label={odds.label} viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none">
          <path class="odds-area" d={`${curve}L${width} ${height}L0 ${height}Z`} />
          <path class="odds-curve" d={curve} />
          {odds.marks.filter((m) => m.at <= odds.until).map((m) => (
            <line key={m.chance} class="odds-mark" x1={x(m.at)} x2={x(m.at)} y1={y(m.chance)} y2={height} />
          ))}
        </svg>
        <div class="odds-axis" aria-hidden="true"><span>now</span><span>in {rough(odds.until)}</span></div>
        <figcaption>
          {odds.marks.map((m) => <span key={m.chance} class="odds-said">{percent(m.chance)} <b>{m.at === 0 ? "at once" : rough(m.at)}</b></span>)}
        </figcaption>
      </figure>
      <p class="note">
        {odds.runs} runs of a plain model with the past of this cluster
        {odds.hindcasts > 0 && <>, corrected by what came of its forecasts at {odds.hindcasts} moments of the past</>}.
        {odds.later > 0 && <> {odds.later} of them start later than is drawn, or not at all.</>}
      </p>
    </section>
  );
}
