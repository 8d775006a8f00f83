// The calls, as docs/clients.md describes them.
import type { AnswerJson, BasisJson, InputJson, SimulateResponseJson, StepJson } from "./contract.ts";

// Fault is an error that a call was answered with, or that kept it from being answered.
export class Fault extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly reason = "",
  ) {
    super(message);
  }
}

const service = "/apportion.v1.ApportionService/";

let bearer = "";

// identify sets the token that calls carry. It is kept in this page's memory alone.
export function identify(token: string): void {
  bearer = token;
}

interface ErrorBody {
  code?: string;
  message?: string;
  details?: { type?: string; debug?: { reason?: string } }[];
}

// call makes one call.
export async function call<A>(method: string, request: unknown, signal?: AbortSignal): Promise<A> {
  const headers: Record<string, string> = { "Content-Type": "application/json", "Connect-Protocol-Version": "1" };
  if (bearer !== "") {
    headers["Authorization"] = `Bearer ${bearer}`;
  }
  let response: Response;
  try {
    response = await fetch(service + method, { method: "POST", headers, body: JSON.stringify(request), signal: signal ?? null });
  } catch (error) {
    if (signal?.aborted) {
      throw error;
    }
    throw new Fault("unavailable", "The server cannot be reached. It may have ended: start it again, and reload this page.");
  }
  const text = await response.text();
  if (response.ok) {
    return JSON.parse(text) as A;
  }
  let body: ErrorBody = {};
  try {
    body = JSON.parse(text) as ErrorBody;
  } catch {
    // A proxy answers in its own words.
  }
  const reason = body.details?.map((d) => d.debug?.reason ?? "").find((r) => r !== "") ?? "";
  throw new Fault(body.code ?? `HTTP ${response.status}`, body.message ?? response.statusText, reason);
}

export interface Answers {
  readonly basis: BasisJson;
  readonly answers: readonly AnswerJson[];
}

// simulate asks steps about an input. A step that failed is a fault.
export async function simulate(input: InputJson, steps: readonly StepJson[], signal?: AbortSignal): Promise<Answers> {
  const inline = input.snapshot !== undefined && input.change !== undefined;
  // A snapshot that is sent whole takes its change as the first step.
  const { change, ...rest } = input;
  const request = inline ? { input: rest, steps: [{ change: { change } }, ...steps] } : { input, steps };
  const response = await call<SimulateResponseJson>("Simulate", request, signal);
  let answers = response.answers ?? [];
  for (const answer of answers) {
    if (answer.error !== undefined) {
      throw new Fault("invalid_argument", answer.error.message ?? "a step failed");
    }
  }
  if (inline) {
    answers = answers.slice(1);
  }
  return { basis: response.basis ?? {}, answers };
}
