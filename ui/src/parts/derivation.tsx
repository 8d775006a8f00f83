// How a queue's share is computed, step by step.
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";

import { amountOf, textOf, unitFor } from "../core/amount.ts";
import type {
  CapacityDerivationJson, FairDerivationJson, FairDivisionJson, FairPortionJson, ProportionDerivationJson, ResourceJson, StepJson,
} from "../core/contract.ts";
import { having, to } from "../core/route.ts";
import { plain, say, word } from "../core/say.ts";
import { dividing } from "../core/shares.ts";
import { isolated } from "../core/isolate.ts";
import { usePage, useSteps } from "../page.tsx";
import { Empty, Failed, Loading } from "./states.tsx";

// With more queues the page requests the derivation of one queue at a time.
const mostQueues = 60;

export function Derivation({ name }: { name: string }) {
  const { cluster, policy } = usePage();
  const steps = useMemo<StepJson[]>(
    () => [cluster.queues.length <= mostQueues ? { shares: { explain: {} } } : { shares: { queues: { names: [name] }, explain: { queues: { names: [name] } } } }],
    [cluster, name],
  );
  const { answer, fault } = useSteps(steps, policy);
  if (fault !== undefined) {
    return <Failed fault={fault} />;
  }
  const plugin = dividing(answer?.answers[0]?.shares);
  if (answer === undefined) {
    return <Loading what="Loading the derivation" />;
  }
  if (plugin?.proportion !== undefined) {
    return <Rounds d={plugin.proportion} name={name} />;
  }
  if (plugin?.capacity !== undefined) {
    return <Levels d={plugin.capacity} name={name} />;
  }
  if (plugin?.fair !== undefined) {
    return <Divisions d={plugin.fair} name={name} />;
  }
  return <Empty>{say("noDivision")}.</Empty>;
}

interface Part {
  readonly class: string;
  readonly amount: number;
}

const percent = (amount: number, scale: number): string => `${Math.min(100, Math.max(0, (100 * amount) / (scale || 1))).toFixed(3)}%`;

// Steps is a bar of thin lines, one for each step.
function Steps({ parts, scale, label }: { parts: readonly Part[]; scale: number; label: string }) {
  const height = 5;
  return (
    <svg class="steps" role="img" aria-label={label} height={parts.length * height + 2}>
      <title>{isolated(label)}</title>
      {parts.map((part, i) => <rect key={i} class={part.class} x="0" y={i * height + 1} width={percent(part.amount, scale)} height={height - 1} rx="1" />)}
    </svg>
  );
}

// The steps of a round, with their names.
const roundSteps = [
  { part: "weighted", class: "step0", text: "by weight", long: "its amount before the round, plus its part of the rest by weight" },
  { part: "capped", class: "step1", text: "at most", long: "at most its limit" },
  { part: "requested", class: "step2", text: "request", long: "at most its request" },
  { part: "deserved", class: "step3", text: "guarantee", long: "at least its guarantee: what the queue deserves after the round" },
] as const;

function Rounds({ d, name }: { d: ProportionDerivationJson; name: string }) {
  const { cluster, dimension, route } = usePage();
  const dim = cluster.dimensions[dimension] ?? "";
  const rounds = d.rounds ?? [];
  const at = Math.min(Math.max(0, Number(route.query["round"] ?? 1) - 1 || 0), Math.max(0, rounds.length - 1));
  const round = rounds[at];
  const of = (r: ResourceJson | undefined): number => amountOf(r, dimension) ?? 0;
  const scale = Math.max(1, ...rounds.flatMap((r) => (r.shares ?? []).map((s) => Math.max(of(s.weighted), of(s.deserved)))));
  if (round === undefined) {
    return <Empty>There is nothing to divide.</Empty>;
  }
  const unit = unitFor(dim, [of(d.total), of(round.remaining), ...(round.shares ?? []).flatMap((s) => roundSteps.map((step) => of(s[step.part])))]);
  return (
    <>
      <p>
        Proportion divides {textOf(dim, of(d.total), unit)} in rounds. In each round, every queue that needs more gets its part of the rest by weight, limited
        by its capability and its request, and raised to its guarantee.
      </p>
      <Stepper at={at} count={rounds.length} address={(i) => having(route, { round: String(i + 1) })} />
      <p class="note">
        Round {at + 1} divides {textOf(dim, of(round.remaining), unit)} among queues whose weights sum to {round.totalWeight ?? "0"}.
        {at === rounds.length - 1 && ` No other round follows: ${word(d.end) ?? plain(d.end, "PROPORTION_END_")}.`}
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label={`Round ${at + 1}`}>
        <table class="grid derivation">
          <thead>
            <tr>
              <th>Queue</th><th>weight</th><th class="w-bar"><span class="visually-hidden">Steps</span></th>
              {roundSteps.map((s) => <th key={s.part} title={s.long}><i class={`key ${s.class}`} />{s.text}</th>)}<th><span class="visually-hidden">Met</span></th>
            </tr>
          </thead>
          <tbody>
            {(round.shares ?? []).map((s) => {
              const queue = cluster.queueName(s.queue);
              const parts = roundSteps.map((step) => ({ class: step.class, amount: of(s[step.part]) }));
              return (
                <tr key={s.queue ?? 0} class={queue === name ? "selected" : ""}>
                  <th scope="row"><a href={to(route, "queue", queue)}><bdi>{queue}</bdi></a></th><td>{s.weight ?? 0}</td>
                  <td class="w-bar"><Steps parts={parts} scale={scale} label={`${queue}: ${roundSteps.map((step) => `${step.text} ${textOf(dim, of(s[step.part]), unit)}`).join(", ")}`} /></td>
                  {roundSteps.map((step) => <td key={step.part}>{textOf(dim, of(s[step.part]), unit)}</td>)}
                  <td>{s.met && <span class="pill good">met</span>}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {!(round.shares ?? []).some((s) => cluster.queueName(s.queue) === name) && <p class="note"><bdi>{name}</bdi> got what it needs in an earlier round.</p>}
    </>
  );
}

function Stepper({ at, count, address }: { at: number; count: number; address: (i: number) => string }) {
  return (
    <nav class="tabs" aria-label="Rounds">
      {Array.from({ length: Math.min(count, 30) }, (_, i) => (
        <a key={i} href={address(i)} aria-current={i === at ? "step" : undefined}><span class="visually-hidden">Round </span>{i + 1}</a>
      ))}
    </nav>
  );
}

function Levels({ d, name }: { d: CapacityDerivationJson; name: string }) {
  const { cluster, dimension, route } = usePage();
  const dim = cluster.dimensions[dimension] ?? "";
  const byQueue = useMemo(() => new Map((d.levels ?? []).map((level) => [level.queue ?? 0, level])), [d]);
  const way = useMemo(() => {
    const out = [];
    const seen = new Set<number>();
    for (let level = byQueue.get(cluster.queueIndex(name) ?? -1); level !== undefined && !seen.has(level.queue ?? 0);) {
      seen.add(level.queue ?? 0);
      out.unshift(level);
      level = level.parent === undefined ? undefined : byQueue.get(level.parent);
    }
    return out;
  }, [byQueue, cluster, name]);
  const of = (r: ResourceJson | undefined): number | undefined => amountOf(r, dimension);
  const scale = Math.max(1, ...way.map((level) => of(level.parentRealCapability) ?? 0));
  const unit = unitFor(dim, way.flatMap((l) => [l.parentRealCapability, l.siblingGuarantee, l.capability, l.realCapability, l.writtenDeserved, l.deserved].map(of)));
  return (
    <>
      <p>Capacity uses the configured deserved amount of a queue, limited by the limit of its parent and the guarantees of its siblings.</p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Level by level">
        <table class="grid derivation">
          <thead>
            <tr>
              <th>Queue</th><th class="w-bar"><span class="visually-hidden">Bar</span></th><th><i class="key step0" />parent's limit</th><th>guarantees of siblings</th>
              <th>capability</th><th><i class="key step1" />limit</th><th>configured</th><th><i class="key step3" />deserves</th>
            </tr>
          </thead>
          <tbody>
            {way.map((level) => {
              const queue = cluster.queueName(level.queue);
              const parts = [
                { class: "step0", amount: of(level.parentRealCapability) ?? 0 }, { class: "step1", amount: of(level.realCapability) ?? 0 },
                { class: "step3", amount: of(level.deserved) ?? 0 },
              ];
              return (
                <tr key={level.queue ?? 0} class={queue === name ? "selected" : ""}>
                  <th scope="row"><a href={to(route, "queue", queue)}><bdi>{queue}</bdi></a></th>
                  <td class="w-bar"><Steps parts={parts} scale={scale} label={`${queue}: at most ${textOf(dim, of(level.realCapability), unit)}, deserves ${textOf(dim, of(level.deserved), unit)}`} /></td>
                  <td>{textOf(dim, of(level.parentRealCapability), unit)}</td><td>{textOf(dim, of(level.siblingGuarantee), unit)}</td><td>{textOf(dim, of(level.capability), unit)}</td>
                  <td>{textOf(dim, of(level.realCapability), unit)}</td><td>{textOf(dim, of(level.writtenDeserved), unit)}</td><td>{textOf(dim, of(level.deserved), unit)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </>
  );
}

// heldBy says what holds a share of fair where it is.
function heldBy(x: FairDivisionJson, c: FairPortionJson): string {
  const none = (quanta: string | undefined): boolean => BigInt(quanta ?? 0) === 0n;
  const weighed = (x.rule ?? "FAIR_CASE_UNSPECIFIED") === "FAIR_CASE_WEIGHT";
  switch (true) {
    case none(c.useful):
      return say("heldUseless");
    case c.bound === "FAIR_BOUND_LEVEL":
      return say("heldLevel");
    case c.bound === "FAIR_BOUND_LOWER" && none(c.start):
      return say("heldWeight");
    case c.bound === "FAIR_BOUND_UPPER" && weighed:
      return say("heldDemand");
    case (x.rule === "FAIR_CASE_DESERVED" && c.bound === "FAIR_BOUND_UPPER") || (weighed && BigInt(c.begin ?? 0) > BigInt(c.guaranteed ?? 0)):
      return say("heldDeserved");
    default:
      return say("heldGuarantee");
  }
}

function Divisions({ d, name }: { d: FairDerivationJson; name: string }) {
  const { cluster, dimension, route } = usePage();
  const quantum = Number(d.quanta?.[dimension] ?? 1);
  const ofDimension = (d.divisions ?? []).filter((x) => (x.dimension ?? 0) === dimension);
  const way: FairDivisionJson[] = [];
  const seen = new Set<number>();
  for (let at = cluster.queueIndex(name); at !== undefined && !seen.has(at);) {
    seen.add(at);
    const own = at;
    const division = ofDimension.find((x) => x.children?.some((c) => (c.queue ?? 0) === own));
    if (division !== undefined) {
      way.unshift(division);
    }
    at = division?.queue;
  }
  return (
    <>
      <p>
        Fair divides each resource through the tree in whole quanta of {textOf(cluster.dimensions[dimension] ?? "", quantum)}. Each child gets at least its start and
        at most what it can use. Between the two, its share is its weight times a level that is the same for all. <a href={to(route, "certificate")}>The certificate</a> proves the numbers.
      </p>
      {way.length === 0 && <Empty>No division has this queue as a child.</Empty>}
      {way.map((x, i) => <Division key={i} x={x} quantum={quantum} selected={name} />)}
    </>
  );
}

// Division draws one division of `fair`.
export function Division({ x, quantum, selected, more }: { x: FairDivisionJson; quantum: number; selected?: string; more?: ComponentChildren }) {
  const { cluster, route } = usePage();
  const dim = cluster.dimensions[x.dimension ?? 0] ?? "";
  const amount = (quanta: string | undefined): number => Number(quanta ?? 0) * quantum;
  const level = x.level === undefined ? undefined : Number(x.level.numerator) / Number(x.level.denominator);
  const children = x.children ?? [];
  const scale = Math.max(1, ...children.map((c) => Math.max(amount(c.ceiling), amount(c.share))));
  const unit = unitFor(dim, [amount(x.amount), ...children.flatMap((c) => [amount(c.start), amount(c.ceiling), amount(c.share)])]);
  const lift = (c: FairPortionJson): number | undefined =>
    level === undefined ? undefined : (Number(c.base ?? 0) + Number(c.weight ?? 0) * level) * quantum;
  const most = 200;
  return (
    <section class="division">
      <p class="note">
        <bdi>{x.queue === undefined ? "The cluster" : cluster.queueName(x.queue)}</bdi> divides {textOf(dim, amount(x.amount), unit)}: {word(x.rule) ?? say("FAIR_CASE_WEIGHT")}.
        {x.level !== undefined && ` Level ${x.level.numerator}/${x.level.denominator} quanta for each unit of weight.`} {more}
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label={`Division of ${dim}`}>
        <table class="grid derivation">
          <thead><tr><th>Queue</th><th>weight</th><th class="w-bar"><span class="visually-hidden">Bar</span></th><th>start</th><th>can use</th><th>share</th><th>determined by</th></tr></thead>
          <tbody>
            {children.slice(0, most).map((c) => {
              const queue = cluster.queueName(c.queue);
              const at = lift(c);
              const label = `${queue}: from ${textOf(dim, amount(c.start), unit)} to ${textOf(dim, amount(c.ceiling), unit)}, share ${textOf(dim, amount(c.share), unit)}`;
              return (
                <tr key={c.queue ?? 0} class={queue === selected ? "selected" : ""}>
                  <th scope="row"><a href={to(route, "queue", queue)}><bdi>{queue}</bdi></a></th><td>{c.weight ?? 0}</td>
                  <td class="w-bar">
                    <svg class="bar" role="img" aria-label={label}>
                      <title>{isolated(label)}</title>
                      <rect class="bar-track" x="0" y="2" width={percent(amount(c.ceiling), scale)} height="18" rx="3" />
                      <rect class="bar-has" x="0" y="2" width={percent(amount(c.share), scale)} height="18" rx="3" />
                      {amount(c.start) > 0 && <rect class="bar-guarantee" x="0" y="22.5" width={percent(amount(c.start), scale)} height="3" rx="1.5" />}
                      {at !== undefined && at <= scale && amount(c.ceiling) > 0 && <svg x={percent(at, scale)} overflow="visible"><rect class="bar-deserves" x="-1" y="0" width="2" height="22" /></svg>}
                    </svg>
                  </td>
                  <td>{textOf(dim, amount(c.start), unit)}</td><td>{textOf(dim, amount(c.ceiling), unit)}</td><td>{textOf(dim, amount(c.share), unit)}</td>
                  <td>{heldBy(x, c)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {children.length > most && <p class="note">{children.length - most} more queues are not drawn.</p>}
    </section>
  );
}
