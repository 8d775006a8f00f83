// What the tests of the page without a server share: the folder of the site, and a plain server of files.
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import http from "node:http";
import path from "node:path";

export const root = path.resolve(import.meta.dirname, "../..");
export const folder = path.resolve(process.env.SITE ?? path.join(root, "site"));

const media = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".svg": "image/svg+xml", ".gz": "application/gzip" };

// serve serves the site as plain servers of files do: without headers of its own.
export async function serve(at = folder) {
  const server = http.createServer(async (request, response) => {
    const name = decodeURIComponent(new URL(request.url, "http://x").pathname);
    const file = path.join(at, name.endsWith("/") ? `${name}index.html` : name);
    const known = file.startsWith(at) && (await stat(file).catch(() => undefined))?.isFile();
    if (!known) {
      response.writeHead(404).end("not found");
      return;
    }
    response.writeHead(200, { "Content-Type": media[path.extname(file)] ?? "application/octet-stream" });
    createReadStream(file).pipe(response);
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const address = `http://127.0.0.1:${server.address().port}/`;
  return { address, page: `${address}play.html`, end: () => server.close() };
}
