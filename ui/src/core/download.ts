// Whole snapshots of the server, as the bytes that their digest is of.
import { fromBinary, toJson } from "@bufbuild/protobuf";

import { SnapshotSchema } from "../../gen/apportion/v1/snapshot_pb.ts";
import { Fault, faultOf, stream } from "./ask.ts";
import type { DownloadSnapshotRequestJson, DownloadSnapshotResponseJson, SnapshotJson } from "./contract.ts";

// frame is the length of what stands before each message of a stream: flags, and its length.
const frame = 5;
const ended = 2;

// download returns the version of a digest. Bytes that have another digest are a fault.
export async function download(digest: string, signal?: AbortSignal): Promise<SnapshotJson> {
  const request: DownloadSnapshotRequestJson = { digest };
  const body = await stream("DownloadSnapshot", framed(new TextEncoder().encode(JSON.stringify(request))), signal);
  const data = join(chunks(body));
  // Only pages over TLS, and of this computer, may compute digests.
  const subtle = globalThis.crypto?.subtle;
  if (subtle !== undefined) {
    const sum = new Uint8Array(await subtle.digest("SHA-256", data));
    const got = "sha256:" + Array.from(sum, (byte) => byte.toString(16).padStart(2, "0")).join("");
    if (got !== digest) {
      throw new Fault("data_loss", `the bytes that came have the digest ${got}, not ${digest}`);
    }
  }
  return toJson(SnapshotSchema, fromBinary(SnapshotSchema, data)) as SnapshotJson;
}

// framed is the one message of a request.
function framed(message: Uint8Array): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(frame + message.length);
  new DataView(out.buffer).setUint32(1, message.length);
  out.set(message, frame);
  return out;
}

// chunks returns the pieces of the snapshot in a stream, which ends with an error or with none.
function chunks(body: Uint8Array): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  for (let at = 0; at + frame <= body.length;) {
    const next = at + frame + view.getUint32(at + 1);
    const text = new TextDecoder().decode(body.subarray(at + frame, next));
    if ((view.getUint8(at) & ended) !== 0) {
      const fault = faultOf(text);
      if (fault !== undefined) {
        throw fault;
      }
      return pieces;
    }
    const { chunk } = JSON.parse(text) as DownloadSnapshotResponseJson;
    pieces.push(Uint8Array.from(atob(chunk?.data ?? ""), (letter) => letter.charCodeAt(0)));
    at = next;
  }
  throw new Fault("unavailable", "the snapshot did not come to its end");
}

function join(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    out.set(piece, at);
    at += piece.length;
  }
  return out;
}
