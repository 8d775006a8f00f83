// A sentence with names of the cluster in it, which may be written from right to left.
import { pieces } from "../core/isolate.ts";

export const Sentence = ({ text = "" }: { text?: string | undefined }) => (
  <>{pieces(text).map((p, i) => (p.isolated ? <bdi key={i}>{p.text}</bdi> : p.text))}</>
);
