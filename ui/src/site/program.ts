// A program of WebAssembly in a worker of its own: loaded when it is first asked, asked one thing at a time, and ended when what it does is
// no longer wanted.
import { Fault } from "../core/ask.ts";

// Progress says what a program is doing, and what part of it is done, from 0 to 1; undefined if that is not known.
export type Progress = (doing: string, part?: number) => void;

export interface Request {
  readonly name: string;
  readonly arguments: readonly Uint8Array[];
  // Files that the worker reads and hands to the function as names and contents, after the arguments.
  readonly files?: readonly File[];
}

// Message is what a worker sends.
export type Message =
  | { readonly kind: "progress"; readonly doing: string; readonly part?: number }
  | { readonly kind: "answer"; readonly answer: Uint8Array }
  | { readonly kind: "fault"; readonly fault: { code?: string; message?: string; reason?: string } }
  | { readonly kind: "ended"; readonly text: string };

interface Asked {
  readonly request: Request;
  readonly resolve: (answer: Uint8Array) => void;
  readonly reject: (error: unknown) => void;
  readonly progress: Progress | undefined;
  unwanted: boolean;
}

// What an abandoned question may still take before its worker is ended: to start another one takes about as long.
const grace = 400;

export class Program {
  #worker: Promise<Worker> | undefined;
  #asked: Asked[] = [];
  #running: Asked | undefined;
  #since = 0;

  // url is that of the program, compressed by gzip. restore returns what a new worker is asked first.
  constructor(readonly url: string, readonly restore: () => Request | undefined = () => undefined) {}

  // since returns when the running question began, in milliseconds; 0: none is running.
  get since(): number {
    return this.#running === undefined ? 0 : this.#since;
  }

  // ask asks one thing after those that were asked before.
  ask(request: Request, signal?: AbortSignal, progress?: Progress): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const asked: Asked = { request, resolve, reject, progress, unwanted: false };
      if (signal?.aborted === true) {
        reject(new DOMException("no longer wanted", "AbortError"));
        return;
      }
      signal?.addEventListener("abort", () => this.#abandon(asked), { once: true });
      this.#asked.push(asked);
      void this.#next();
    });
  }

  // cancel ends what is running, and what waits for it.
  cancel(): void {
    const gone = new Fault("canceled", "You cancelled this question. Change something, or reload the page, to ask again.");
    const all = [...(this.#running === undefined ? [] : [this.#running]), ...this.#asked];
    this.#asked = [];
    this.#end();
    all.forEach((asked) => asked.reject(gone));
  }

  #abandon(asked: Asked): void {
    if (asked === this.#running) {
      asked.unwanted = true;
      setTimeout(() => {
        if (this.#running === asked) {
          this.#end();
          void this.#next();
        }
      }, grace);
    }
    this.#asked = this.#asked.filter((other) => other !== asked);
    asked.reject(new DOMException("no longer wanted", "AbortError"));
  }

  #end(): void {
    const worker = this.#worker;
    this.#worker = undefined;
    this.#running = undefined;
    void worker?.then((w) => w.terminate(), () => undefined);
  }

  async #next(): Promise<void> {
    if (this.#running !== undefined) {
      return;
    }
    const asked = this.#asked.shift();
    if (asked === undefined) {
      return;
    }
    this.#running = asked;
    this.#since = performance.now();
    try {
      const fresh = this.#worker === undefined;
      const worker = await (this.#worker ??= start());
      if (this.#running !== asked) {
        return;
      }
      const first = fresh ? this.restore() : undefined;
      if (first !== undefined && first.name !== asked.request.name) {
        await exchange(worker, this.url, first);
      }
      const answer = await exchange(worker, this.url, asked.request, asked.progress);
      if (this.#running === asked) {
        asked.resolve(answer);
      }
    } catch (error) {
      if (this.#running === asked) {
        asked.reject(error);
        if (error instanceof Fault && error.code === "ended") {
          this.#end();
        }
      }
    }
    if (this.#running === asked || this.#running === undefined) {
      this.#running = undefined;
      void this.#next();
    }
  }
}

// exchange sends a request to a worker and returns its answer.
function exchange(worker: Worker, url: string, request: Request, progress?: Progress): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<Message>) => {
      switch (data.kind) {
        case "progress":
          progress?.(data.doing, data.part);
          break;
        case "answer":
          resolve(data.answer);
          break;
        case "fault":
          reject(new Fault(data.fault.code ?? "", data.fault.message ?? "the program failed", data.fault.reason ?? ""));
          break;
        case "ended":
          reject(new Fault("ended", data.text));
      }
    };
    worker.onerror = (event) => {
      event.preventDefault();
      reject(new Fault("ended", "The program that decides ended. It may have run out of memory: the command apportion ui has more of it."));
    };
    worker.postMessage({ url: new URL(url, document.baseURI).href, ...request });
  });
}

interface Trusting {
  createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): { createScriptURL: (url: string) => string };
}

let script: Promise<string> | undefined;

// start starts the worker from its text: then the page's policy of content binds it, too, whatever headers the server of the files sends.
async function start(): Promise<Worker> {
  if (typeof WebAssembly !== "object" || typeof DecompressionStream !== "function") {
    throw new Fault("", "This browser cannot run WebAssembly, or it is switched off. Use a newer browser, or the command apportion ui on your machine.");
  }
  script ??= own("worker.js").then(async (response) => {
    const blob = URL.createObjectURL(new Blob([await response.text()], { type: "text/javascript" }));
    const trusting = (globalThis as { trustedTypes?: Trusting }).trustedTypes;
    return trusting === undefined ? blob : trusting.createPolicy("worker", { createScriptURL: (url) => (url === blob ? url : "") }).createScriptURL(blob);
  });
  try {
    return new Worker(await script);
  } catch (error) {
    script = undefined;
    throw error;
  }
}

// own fetches one of the files of the site.
export async function own(name: string): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(name);
  } catch {
    throw new Fault("unavailable", `The file ${name} of this site cannot be read: is the network cut off? Reload the page when it is back.`);
  }
  if (!response.ok) {
    throw new Fault("unavailable", `The file ${name} of this site is missing (HTTP ${response.status}).`);
  }
  return response;
}
