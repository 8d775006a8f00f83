// A cluster in the address: manifests, compressed, in the letters that addresses allow.

// The most that an address may hold unpacked, in bytes.
const most = 1 << 20;

// cluster returns the manifests that an address holds, as a file.
export async function cluster(packed: string): Promise<File> {
  const fault = new Error("The address holds a cluster that cannot be unpacked: it may have been cut short when it was copied.");
  let binary: string;
  try {
    binary = atob(packed.replace(/-/g, "+").replace(/_/g, "/"));
  } catch {
    throw fault;
  }
  const data = Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  try {
    const reader = new Blob([data]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
    for (let next = await reader.read(); !next.done && size <= most; next = await reader.read()) {
      parts.push(next.value);
      size += next.value.length;
    }
  } catch {
    throw fault;
  }
  if (size > most) {
    throw new Error("The address holds a cluster of more than 1 MB. Open it from a file.");
  }
  return new File(parts, "example.yaml");
}
