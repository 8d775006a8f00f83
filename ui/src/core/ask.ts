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

// services has the calls of other services than that of decisions.
const services: Readonly<Record<string, string>> = {
  UploadSnapshot: "v1.SnapshotService", DownloadSnapshot: "v1.SnapshotService",
  ListSnapshots: "v1.SnapshotService", GetServerInfo: "v1.SnapshotService",
  GetHistory: "v1alpha1.InsightService", GetUsage: "v1alpha1.InsightService",
};

export const pathOf = (method: string): string => `/apportion.${services[method] ?? "v1.DecisionService"}/${method}`;

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

// Transport makes calls. Its errors are Faults.
export interface Transport {
  // call sends a request in JSON to a method of the contract, and returns the response in JSON.
  readonly call: (method: string, request: string, signal?: AbortSignal) => Promise<string>;
  // patches sends answers with remedies in JSON to a path, and returns in JSON the changes of objects that make them.
  readonly patches: (path: string, answers: string, signal: AbortSignal) => Promise<string>;
}

// send sends a request to a method.
async function send(method: string, type: string, body: string | Uint8Array<ArrayBuffer>, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = { "Content-Type": type, "Connect-Protocol-Version": "1" };
  if (bearer !== "") {
    headers["Authorization"] = `Bearer ${bearer}`;
  }
  try {
    return await fetch(pathOf(method), { method: "POST", headers, body, signal: signal ?? null });
  } catch (error) {
    if (signal?.aborted) {
      throw error;
    }
    throw new Fault("unavailable", "The server cannot be reached. If it has stopped, start it again and reload this page.");
  }
}

// faultOf reads the error of a call, or that with which a stream ends. Undefined: there is none.
export function faultOf(text: string, code = "", message = ""): Fault | undefined {
  let body: ErrorBody & { error?: ErrorBody } = {};
  try {
    body = JSON.parse(text) as ErrorBody;
  } catch {
    // A proxy may answer without JSON.
  }
  const error = body.error ?? body;
  if (code === "" && error.code === undefined) {
    return undefined;
  }
  const reason = error.details?.map((d) => d.debug?.reason ?? "").find((r) => r !== "") ?? "";
  return new Fault(error.code ?? code, error.message ?? message, reason);
}

async function post(method: string, request: string, signal?: AbortSignal): Promise<string> {
  const response = await send(method, "application/json", request, signal);
  const text = await response.text();
  if (response.ok) {
    return text;
  }
  throw faultOf(text, `HTTP ${response.status}`, response.statusText);
}

// stream sends the one message of a request, in its frame, and returns the messages that answer it, in theirs. Only a server has streams.
export async function stream(method: string, message: Uint8Array<ArrayBuffer>, signal?: AbortSignal): Promise<Uint8Array> {
  const response = await send(method, "application/connect+json", message, signal);
  if (!response.ok) {
    throw faultOf(await response.text(), `HTTP ${response.status}`, response.statusText);
  }
  return new Uint8Array(await response.arrayBuffer());
}

const overHTTP: Transport = {
  call: post,
  patches: async (path, answers, signal) => {
    const response = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: answers, signal });
    if (!response.ok) {
      throw new Fault(`HTTP ${response.status}`, `${path}: ${response.statusText}`);
    }
    return response.text();
  },
};

let transport = overHTTP;

// sendBy sets the transport of all calls. Default: HTTP, to the server that sent the page.
export function sendBy(other: Transport): void {
  transport = other;
}

// call makes one call.
export async function call<A>(method: string, request: unknown, signal?: AbortSignal): Promise<A> {
  return JSON.parse(await transport.call(method, JSON.stringify(request), signal)) as A;
}

// patches returns the changes of objects that make the remedies of an answer.
export async function patches<A>(path: string, answers: Answers, signal: AbortSignal): Promise<A> {
  return JSON.parse(await transport.patches(path, JSON.stringify(answers), signal)) as A;
}

export interface Answers {
  readonly basis: BasisJson;
  readonly answers: readonly AnswerJson[];
}

// simulate sends steps about an input. A failed step becomes a Fault.
export async function simulate(input: InputJson, steps: readonly StepJson[], signal?: AbortSignal): Promise<Answers> {
  const response = await call<SimulateResponseJson>("Simulate", { input, steps }, signal);
  const answers = response.answers ?? [];
  for (const answer of answers) {
    if (answer.error !== undefined) {
      throw new Fault("invalid_argument", answer.error.message ?? "a step failed");
    }
  }
  return { basis: response.basis ?? {}, answers };
}
