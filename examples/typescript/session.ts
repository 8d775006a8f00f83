// What a client of Apportion wants beside its stubs: a session that is asked like a function and outlives its replica, a second attempt
// where that helps, and errors and reasons in words.

import { setTimeout } from "node:timers/promises";
import { clone, create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import { createWritableIterable, type WritableIterable } from "@connectrpc/connect/protocol";
import type { Answer, Basis } from "./gen/apportion/v1/answer_pb.ts";
import { CauseCodeSchema, type Verdict } from "./gen/apportion/v1/cause_pb.ts";
import type { DecisionService, RunSessionRequestSchema, RunSessionResponse } from "./gen/apportion/v1/service_pb.ts";
import { type Input, InputSchema } from "./gen/apportion/v1/session_pb.ts";
import { type Step, StepSchema } from "./gen/apportion/v1/step_pb.ts";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "./gen/google/rpc/error_details_pb.ts";

type Service = Client<typeof DecisionService>;
type Request = MessageInitShape<typeof RunSessionRequestSchema>;
type Question = Exclude<MessageInitShape<typeof StepSchema>["step"], undefined | { case?: undefined }>;
type Kind = NonNullable<Answer["answer"]["case"]>;
/** What answers a step of a kind; a rollback is answered as its mark was. */
type Result<K> = Extract<Answer["answer"], { case: K extends Kind ? K : "mark" }>["value"];

const attempts = 5;

/** The result of ask, called with the milliseconds left, and again while servers are busy or lost. No call changes the server's state. */
export async function again<T>(ask: (left: number) => Promise<T>, within: number): Promise<T> {
  const end = performance.now() + within;
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask(Math.ceil(end - performance.now()));
    } catch (error) {
      const pause = retryDelay(error);
      if (pause === undefined || attempt === attempts || performance.now() + pause >= end) throw error;
      await setTimeout(pause);
    }
  }
}

/**
 * A conversation about one snapshot, which must be over in time: each question sees what the steps before it changed. Where its replica is
 * lost or sends it away, it goes on at another one, after the steps that changed something were done again.
 */
export class Session {
  private readonly end: number;
  private readonly world: Input;
  private readonly changes: Step[] = [];
  private basis?: Basis;
  private goingAway = false;
  private stream?: { requests: WritableIterable<Request>; responses: AsyncIterator<RunSessionResponse> };

  private constructor(private service: Service, world: Input, within: number) {
    this.end = performance.now() + within;
    // Another replica begins with the same input, whatever becomes of the caller's.
    this.world = clone(InputSchema, world);
  }

  static async open(service: Service, world: Input, within: number): Promise<Session> {
    const session = new Session(service, world, within);
    await again(() => session.restore(), within);
    return session;
  }

  get dimensions(): string[] {
    return this.basis!.dimensions;
  }

  /** Returns one result for each step. A step that fails is a fault of this program. */
  async ask<Q extends Question[]>(...questions: Q): Promise<{ [I in keyof Q]: Result<Q[I]["case"]> }> {
    const steps = questions.map((step) => create(StepSchema, { step }));
    const answers = await again(() => this.answered(steps), this.end - performance.now());
    this.changes.push(...steps.filter((_, i) => answers[i].changed));
    return answers.map(({ answer }) => {
      if (answer.case === "error") throw new Error(answer.value.message);
      return answer.value;
    }) as never;
  }

  async close() {
    this.stream?.requests.close();
    await this.stream?.responses.next();
    this.stream = undefined;
  }

  private async answered(steps: Step[]): Promise<Answer[]> {
    if (!this.stream) await this.restore();
    const { message } = await this.exchange({ message: { case: "batch", value: { steps } } });
    if (this.goingAway) await this.close();
    return message.case === "answers" ? message.value.answers : [];
  }

  private async restore() {
    const requests = createWritableIterable<Request>();
    const responses = this.service.runSession(requests, { timeoutMs: Math.ceil(this.end - performance.now()) })[Symbol.asyncIterator]();
    [this.stream, this.goingAway] = [{ requests, responses }, false];
    const { message } = await this.exchange({ message: { case: "open", value: { input: this.world } } });
    const basis = message.case === "opened" ? message.value.basis! : undefined;
    this.basis ??= basis;
    if (basis?.policyDigest !== this.basis?.policyDigest || basis?.engineVersion !== this.basis?.engineVersion) {
      await this.close();
      throw new ConnectError("policy or engine are others where the session should have gone on: begin anew", Code.Aborted);
    }
    if (this.changes.length === 0) return;
    const repeated = (await this.exchange({ message: { case: "batch", value: { steps: this.changes } } })).message;
    if (repeated.case !== "answers" || !repeated.value.answers.every((answer) => answer.changed)) {
      await this.close();
      throw new ConnectError("a step that succeeded before is refused: begin anew", Code.Aborted);
    }
  }

  /** Says something, and returns what answers it. */
  private async exchange(request: Request): Promise<RunSessionResponse> {
    const { requests, responses } = this.stream!;
    requests.write(request).catch(() => {}); // The responses tell why.
    try {
      for (;;) {
        const { value, done } = await responses.next();
        if (done) throw new ConnectError("the session was ended", Code.Unavailable);
        if (value.message.case !== "goingAway") return value;
        this.goingAway = true;
      }
    } catch (error) {
      requests.close();
      this.stream = undefined;
      throw error;
    }
  }
}

/** Milliseconds after which to ask again; undefined: asking again does not help. */
function retryDelay(error: unknown): number | undefined {
  if (!(error instanceof ConnectError)) return undefined;
  const told = error.findDetails(RetryInfoSchema)[0]?.retryDelay;
  if (told) return Number(told.seconds) * 1000 + told.nanos / 1e6;
  return error.code === Code.Unavailable ? 100 : undefined;
}

/** What the details of a failed call say. */
export function fault(error: unknown): string {
  if (!(error instanceof ConnectError)) throw error;
  const name = Code[error.code].replace(/\B[A-Z]/g, "_$&").toUpperCase();
  const violations = error.findDetails(BadRequestSchema).flatMap((bad) => bad.fieldViolations);
  return [error.findDetails(ErrorInfoSchema)[0]?.reason ?? name, ...violations.map((v) => `${v.field}: ${v.description}`)].join(", ");
}

/** The first cause of a verdict, in words. */
export function grounds(verdict: Verdict, dimensions: string[]): string {
  const [cause] = verdict.causes;
  const code = CauseCodeSchema.value[cause.code]?.name ?? cause.code; // Only a newer version knows it.
  const numbers = cause.dimensions[0] === undefined ? "" : `, ${dimensions[cause.dimensions[0]]}: ${cause.have} + ${cause.need} > ${cause.limit}`;
  return `${cause.plugin} ${code}${numbers}`;
}
