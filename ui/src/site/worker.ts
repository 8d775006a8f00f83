// The worker that runs a program of WebAssembly. It is loaded with the first question.
import "go-wasm-exec";

import { expanded } from "./files.ts";
import type { Message, Request } from "./program.ts";

interface Go {
  readonly importObject: WebAssembly.Imports;
  run(instance: WebAssembly.Instance): Promise<void>;
}

type Called = (...given: readonly Uint8Array[]) => { answer?: Uint8Array; fault?: Uint8Array };

const scope = globalThis as unknown as {
  Go: new () => Go;
  apportion?: Readonly<Record<string, Called>>;
  progress: (read: number) => void;
  advance: (part: number) => void;
  onmessage: (event: MessageEvent<Request & { url: string }>) => void;
  postMessage: (message: Message, transfer?: readonly ArrayBuffer[]) => void;
};

const report = (doing: string, part?: number): void => scope.postMessage({ kind: "progress", doing, ...(part === undefined ? {} : { part }) });

// fetched reads a file of the site, and says how far it is. Some servers decompress what is compressed, so its first bytes tell what it is.
async function fetched(url: string): Promise<Uint8Array<ArrayBuffer>> {
  const response = await fetch(url);
  if (!response.ok || response.body === null) {
    throw new Error(`HTTP ${response.status}`);
  }
  const whole = Number(response.headers.get("Content-Length") ?? 0);
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let read = 0;
  const reader = response.body.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    parts.push(next.value);
    read += next.value.length;
    report("Loading the program", whole > 0 ? Math.min(1, read / whole) : undefined);
  }
  const blob = new Blob(parts);
  const zipped = parts[0]?.[0] === 0x1f && parts[0][1] === 0x8b;
  const stream = zipped ? blob.stream().pipeThrough(new DecompressionStream("gzip")) : blob.stream();
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function load(url: string): Promise<void> {
  let program: Uint8Array<ArrayBuffer>;
  try {
    program = await fetched(url);
  } catch {
    throw { code: "unavailable", message: "The program that decides cannot be loaded from this site: is the network cut off? Reload the page when it is back." };
  }
  report("Starting the program");
  const go = new scope.Go();
  const { instance } = await WebAssembly.instantiate(program, go.importObject);
  void go.run(instance).finally(() => scope.postMessage({
    kind: "ended", text: "The program that decides ended. It may have run out of memory: the command apportion ui has more of it.",
  }));
}

let loaded: Promise<void> | undefined;

scope.onmessage = async ({ data: { url, name, arguments: given, files } }) => {
  try {
    await (loaded ??= load(url));
    const called = scope.apportion?.[name];
    if (called === undefined) {
      throw { message: `the program has no function ${name}` };
    }
    let all = given;
    if (files !== undefined) {
      const read = await expanded(files, report);
      const size = read.reduce((sum, file) => sum + file.data.length, 0);
      scope.progress = (bytes) => report("Reading the objects", Math.min(1, bytes / size));
      scope.advance = (part) => report("Rehearsing", part);
      all = [...given, ...read.flatMap((file) => [new TextEncoder().encode(file.name), file.data])];
      report(name === "read" ? "Reading the objects" : "Rehearsing");
    }
    const { answer, fault } = called(...all);
    if (answer === undefined) {
      throw JSON.parse(new TextDecoder().decode(fault)) as unknown;
    }
    scope.postMessage({ kind: "answer", answer }, [answer.buffer as ArrayBuffer]);
  } catch (error) {
    if (loaded !== undefined && scope.apportion === undefined) {
      loaded = undefined;
    }
    const fault = error instanceof Error ? { message: error.message } : (error as { message?: string });
    scope.postMessage({ kind: "fault", fault });
  }
};
