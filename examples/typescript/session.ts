// What a client of Apportion wants beside its stubs: a session that is asked like a function, and errors and reasons in words.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import { createWritableIterable } from "@connectrpc/connect/protocol";
import type { Answer } from "./gen/apportion/v1/answer_pb.ts";
import { ReasonCodeSchema, type Verdict } from "./gen/apportion/v1/reason_pb.ts";
import type { ApportionService, RunSessionRequestSchema } from "./gen/apportion/v1/service_pb.ts";
import type { Input } from "./gen/apportion/v1/session_pb.ts";
import type { StepSchema } from "./gen/apportion/v1/step_pb.ts";
import { BadRequestSchema, ErrorInfoSchema } from "./gen/google/rpc/error_details_pb.ts";

type Question = Exclude<MessageInitShape<typeof StepSchema>["step"], undefined | { case?: undefined }>;
type Kind = NonNullable<Answer["answer"]["case"]>;
/** What answers a question of a kind; steps that only change something have no kind of their own. */
type Result<K> = Extract<Answer["answer"], { case: K extends Kind ? K : "done" }>["value"];

/** A conversation about one snapshot: each question sees what the steps before it changed. */
export class Session {
  dimensions: string[] = [];
  private readonly requests = createWritableIterable<MessageInitShape<typeof RunSessionRequestSchema>>();
  private readonly responses;

  constructor(service: Client<typeof ApportionService>, timeoutMs: number) {
    this.responses = service.runSession(this.requests, { timeoutMs })[Symbol.asyncIterator]();
  }

  async open({ source, rule }: Input) {
    void this.requests.write({ message: { case: "open", value: { source, rule } } });
    const { value } = await this.responses.next();
    this.dimensions = value.message.case === "opened" ? value.message.value.basis!.dimensions : [];
  }

  /** Returns one result for each step. A step that fails is a fault of this program. */
  async ask<Q extends Question[]>(...steps: Q): Promise<{ [I in keyof Q]: Result<Q[I]["case"]> }> {
    void this.requests.write({ message: { case: "batch", value: { steps: steps.map((step) => ({ step })) } } });
    for (;;) {
      const { value } = await this.responses.next();
      if (value.message.case !== "answers") continue;
      return value.message.value.answers.map(({ answer }: Answer) => {
        if (answer.case === "error") throw new Error(answer.value.message);
        return answer.value;
      });
    }
  }

  async close() {
    this.requests.close();
    await this.responses.next();
  }
}

/** What the details of a failed call say. */
export function fault(error: unknown): string {
  if (!(error instanceof ConnectError)) throw error;
  const name = Code[error.code].replace(/\B[A-Z]/g, "_$&").toUpperCase();
  const violations = error.findDetails(BadRequestSchema).flatMap((bad) => bad.fieldViolations);
  return [error.findDetails(ErrorInfoSchema)[0]?.reason ?? name, ...violations.map((v) => `${v.field}: ${v.description}`)].join(", ");
}

/** The first reason of a verdict, in words. */
export function grounds(verdict: Verdict, dimensions: string[]): string {
  const [reason] = verdict.reasons;
  const code = ReasonCodeSchema.value[reason.code]?.name ?? reason.code; // Only a newer version knows it.
  const numbers = reason.dimension === undefined ? "" : `, ${dimensions[reason.dimension]}: ${reason.have} + ${reason.need} > ${reason.limit}`;
  return `${reason.plugin} ${code}${numbers}`;
}
