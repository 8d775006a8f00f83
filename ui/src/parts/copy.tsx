// A command or a sentence with a button that copies it.
import { useState } from "preact/hooks";
import { Sentence } from "./sentence.tsx";

const shown = 1500;

// quoted joins words as a shell reads them.
export const quoted = (...words: readonly string[]): string =>
  words.map((w) => (/^[\w./:=@+,-]+$/.test(w) ? w : `'${w.replaceAll("'", "'\\''")}'`)).join(" ");

// CopyButton copies a text to the clipboard.
export function CopyButton({ text, what }: { text: string; what: string }) {
  const [done, set] = useState("");
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      set("copied");
    } catch {
      set("not allowed");
    }
    setTimeout(() => set(""), shown);
  };
  return <button type="button" class="copy" aria-label={`Copy ${what}`} onClick={() => void copy()}><span role="status">{done || "copy"}</span></button>;
}

// Command is a command line that can be copied.
export const Command = ({ text }: { text: string }) => (
  <span class="command"><code><Sentence text={text} /></code><CopyButton text={text} what={text} /></span>
);
