// The calls, as docs/clients.md describes them.
import type { AnswerJson, BasisJson, InputJson, SimulateResponseJson, StepJson } from "./contract.ts";

// Fault is the error of a call, from the server or from the connection.
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

// identify sets the token of all calls. Only the memory of the page holds it.
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
    throw new Fault("unavailable", "The server cannot be reached. If it has stopped, start it again and reload this page.");
  }
  const text = await response.text();
  if (response.ok) {
    return JSON.parse(text) as A;
  }
  let body: ErrorBody = {};
  try {
    body = JSON.parse(text) as ErrorBody;
  } catch {
    // A proxy may answer without JSON.
  }
  const reason = body.details?.map((d) => d.debug?.reason ?? "").find((r) => r !== "") ?? "";
  throw new Fault(body.code ?? `HTTP ${response.status}`, body.message ?? response.statusText, reason);
}

export interface Answers {
  readonly basis: BasisJson;
  readonly answers: readonly AnswerJson[];
}

// simulate sends steps about an input. A failed step becomes a Fault.
export async function simulate(input: InputJson, steps: readonly StepJson[], signal?: AbortSignal): Promise<Answers> {
  const inline = input.snapshot !== undefined && input.change !== undefined;
  // If the whole snapshot is sent, its change is the first step.
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
