// Plays the conformance vectors: each message is the same in both forms, and each call is answered as written.

import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { createRegistry, type DescMessage, type DescMethod, equals, fromBinary, fromJsonString, type Message, toJsonString } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { DecisionService, SnapshotService } from "./gen/apportion/v1/service_pb.ts";
import { InsightService } from "./gen/apportion/v1alpha1/service_pb.ts";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "./gen/google/rpc/error_details_pb.ts";
import { type Status, StatusSchema } from "./gen/google/rpc/status_pb.ts";

const registry = createRegistry(BadRequestSchema, ErrorInfoSchema, RetryInfoSchema);

/** A vector's messages in order, with their roles. */
function read(folder: string, kinds: Record<string, DescMessage>): [string, Message][] {
  const files = readdirSync(folder).filter((file) => file.endsWith(".binpb"));
  return files
    .sort((a, b) => Number.parseInt(a) - Number.parseInt(b))
    .map((file) => {
      const role = file.split(".")[1];
      const message = fromBinary(kinds[role], readFileSync(join(folder, file)));
      const text = readFileSync(join(folder, file.replace("binpb", "json")), "utf8");
      if (!equals(kinds[role], message, fromJsonString(kinds[role], text, { registry }))) throw new Error(`${file}: the forms differ`);
      return [role, message];
    });
}

/** The status of a failed call. */
function statusOf(error: unknown): unknown {
  if (!(error instanceof ConnectError)) throw error;
  const details = error.details.map((detail) => ("type" in detail ? { type: detail.type, value: Buffer.from(detail.value) } : detail));
  return { code: error.code as number, message: error.rawMessage, details };
}

function written({ code, message, details }: Status): unknown {
  return { code, message, details: details.map(({ typeUrl, value }) => ({ type: typeUrl.split("/")[1], value: Buffer.from(value) })) };
}

async function replay(transport: ReturnType<typeof createGrpcTransport>, folder: string) {
  const method = [DecisionService, SnapshotService, InsightService].flatMap((service): DescMethod[] => [...service.methods]).find((method) => method.name === basename(dirname(folder)))!;
  const exchange = read(folder, { request: method.input, response: method.output, status: StatusSchema });
  async function* requests() {
    for (const [role, message] of exchange) if (role === "request") yield message as never;
  }
  async function* responses() {
    // On the wire every call is a stream in both directions.
    yield* (await transport.stream(method as never, undefined, 10_000, undefined, requests())).message as AsyncIterable<Message>;
  }
  const answers = responses();
  for (const [role, expected] of exchange) {
    if (role === "response") {
      const { value } = await answers.next();
      if (!value || !equals(method.output, value, expected)) throw new Error(`answered with ${value ? toJsonString(method.output, value) : "nothing"}`);
    } else if (role === "status") {
      const answer = await answers.next().then(() => "no error", statusOf);
      if (!isDeepStrictEqual(answer, written(expected as Status))) throw new Error(`answered with ${JSON.stringify(answer)}`);
    }
  }
}

const [address, root] = process.argv.slice(2);
const transport = createGrpcTransport({ baseUrl: `http://${address}` });
const methods = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory());
const vectors = methods.flatMap(({ name }) => readdirSync(join(root, name)).map((vector) => join(root, name, vector)));
let failed = 0;
for (const vector of vectors) {
  await replay(transport, vector).catch((fault) => {
    failed++;
    console.log(`${vector}: ${fault}`);
  });
}
console.log(`${vectors.length - failed} passed, ${failed} failed`);
process.exit(failed > 0 || vectors.length === 0 ? 1 : 0);
