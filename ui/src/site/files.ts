// Files that a person gives: as they are, or in archives. What they hold is bounded before it is unpacked.
import { Unzip, UnzipInflate } from "fflate";

import type { Progress } from "./program.ts";

export interface Named {
  readonly name: string;
  readonly data: Uint8Array;
}

// The most that is read, in bytes and files: more takes more memory than a browser gives one page.
export const most = 128 << 20;
export const mostFiles = 5000;

const megabytes = (bytes: number): string => `${Math.round(bytes / (1 << 20)).toLocaleString("en-US")} MB`;

const instead = "The command apportion ui -f reads files of any size.";

// tooLarge returns what to say about files that are larger than what is read, before anything is read.
export function tooLarge(files: readonly { readonly name: string; readonly size: number }[]): string | undefined {
  const size = files.reduce((sum, file) => sum + file.size, 0);
  if (size <= most) {
    return undefined;
  }
  const what = files.length === 1 ? `${files[0]?.name ?? "The file"} has` : `The ${files.length.toLocaleString("en-US")} files have`;
  return `${what} ${megabytes(size)}. This page reads up to ${megabytes(most)}. ${instead}`;
}

// Room is what may still be read.
class Room {
  #left = most;
  #files = mostFiles;

  take(bytes: number): void {
    this.#left -= bytes;
    if (this.#left < 0) {
      throw new Error(`Unpacked, the files have more than ${megabytes(most)}, which is the most that this page reads. ${instead}`);
    }
  }

  file(): void {
    if (this.#files-- === 0) {
      throw new Error(`There are more than ${mostFiles.toLocaleString("en-US")} files, which is the most that this page reads. ${instead}`);
    }
  }
}

const wanted = (name: string): boolean => /\.(ya?ml|json|conf)$/i.test(name) && !/(^|\/)(__MACOSX\/|\._)/.test(name);

// expanded reads files, and those in archives: .zip, .tar, .tar.gz and .gz. Of archives it takes those that end in .yaml, .yml, .json or .conf.
export async function expanded(files: readonly File[], progress: Progress): Promise<Named[]> {
  const large = tooLarge(files);
  if (large !== undefined) {
    throw new Error(large);
  }
  const room = new Room();
  const found: Named[] = [];
  for (const file of files) {
    progress(`Reading ${file.name}`);
    found.push(...await unpacked(file.name, new Uint8Array(await file.arrayBuffer()), room));
  }
  if (found.length === 0) {
    throw new Error(`${files.map((file) => file.name).join(", ")}: there is no file in it that ends in .yaml, .yml, .json or .conf.`);
  }
  return found;
}

async function unpacked(name: string, data: Uint8Array<ArrayBuffer>, room: Room): Promise<Named[]> {
  try {
    if (data[0] === 0x1f && data[1] === 0x8b) {
      const inner = name.replace(/\.tgz$/i, ".tar").replace(/\.gz$/i, "");
      const plain = await gunzipped(data, room);
      return isTar(plain) ? untarred(plain, room) : [one(inner, plain, room)];
    }
    if (data[0] === 0x50 && data[1] === 0x4b && data[2] === 3 && data[3] === 4) {
      return unzipped(data, room);
    }
    if (isTar(data)) {
      room.take(data.length);
      return untarred(data, room);
    }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`${name} cannot be unpacked: ${/invalid|unexpected EOF/.test(why) ? "it is damaged, or ends early." : why}`);
  }
  room.take(data.length);
  return [one(name, data, room)];
}

// one returns a file as UTF-8: Windows PowerShell writes UTF-16 where its output is redirected.
function one(name: string, data: Uint8Array, room: Room): Named {
  room.file();
  const mark = ((data[0] ?? 0) << 8) | (data[1] ?? 0);
  if (mark !== 0xfffe && mark !== 0xfeff) {
    return { name, data };
  }
  return { name, data: new TextEncoder().encode(new TextDecoder(mark === 0xfffe ? "utf-16le" : "utf-16be").decode(data)) };
}

async function gunzipped(data: Uint8Array<ArrayBuffer>, room: Room): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  const reader = new Blob([data]).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      room.take(next.value.length);
      parts.push(next.value);
    }
  } catch (error) {
    if (error instanceof TypeError) {
      throw new Error("it is damaged, or ends early.");
    }
    throw error;
  }
  return joined(parts);
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

// Bytes that are unpacked at a time, so that an archive that grows a thousandfold is stopped in time. The library calls itself for each file
// that ends in them, so that many would take more stack than there is.
const step = 4 << 10;

function unzipped(data: Uint8Array, room: Room): Named[] {
  const found: Named[] = [];
  const open = new Set<string>();
  // What the callback throws comes back to it as an error of the archive: the first one counts.
  let first: unknown;
  const archive = new Unzip((file) => {
    if (!wanted(file.name)) {
      return;
    }
    const parts: Uint8Array[] = [];
    open.add(file.name);
    file.ondata = (error, part, final) => {
      try {
        if (error !== null) {
          throw new Error(`${file.name}: ${error.message}.`);
        }
        room.take(part.length);
        parts.push(part);
        if (final) {
          open.delete(file.name);
          found.push(one(file.name, joined(parts), room));
        }
      } catch (fault) {
        throw (first ??= fault);
      }
    };
    file.start();
  });
  archive.register(UnzipInflate);
  for (let at = 0; at < data.length; at += step) {
    try {
      archive.push(data.subarray(at, at + step), at + step >= data.length);
    } catch (fault) {
      throw first ?? fault;
    }
  }
  if (open.size > 0) {
    throw new Error("it is damaged, or ends early.");
  }
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

const block = 512;

const isTar = (data: Uint8Array): boolean => data.length >= block && text(data, 257, 5) === "ustar";

function text(data: Uint8Array, at: number, length: number): string {
  const field = data.subarray(at, at + length);
  const end = field.indexOf(0);
  return new TextDecoder().decode(end < 0 ? field : field.subarray(0, end));
}

// untarred reads an archive of tar. Names that do not fit into a header stand in an entry before it, in the form of POSIX or of GNU.
function untarred(data: Uint8Array, room: Room): Named[] {
  const found: Named[] = [];
  let long = "";
  for (let at = 0; at + block <= data.length && data[at] !== 0;) {
    const size = parseInt(text(data, at + 124, 12).trim() || "0", 8);
    const begin = at + block;
    if (!(size >= 0) || begin + size > data.length) {
      throw new Error("it is damaged, or ends early.");
    }
    const content = data.subarray(begin, begin + size);
    const kind = String.fromCharCode(data[at + 156] ?? 0);
    if (kind === "x") {
      long = /(?:^|\n)\d+ path=([^\n]*)\n/.exec(new TextDecoder().decode(content))?.[1] ?? "";
    } else if (kind === "L") {
      long = text(content, 0, size);
    } else {
      const folder = text(data, at + 345, 155);
      const name = long !== "" ? long : (folder === "" ? "" : `${folder}/`) + text(data, at, 100);
      long = "";
      if ((kind === "0" || kind === "\0") && wanted(name)) {
        found.push(one(name, content, room));
      }
    }
    at = begin + Math.ceil(size / block) * block;
  }
  return found;
}
