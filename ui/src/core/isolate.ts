// Text that is written from right to left, within sentences that are not.

// Letters of scripts that are written from right to left.
const letters = "\\u0590-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufefe\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}";
// Ends of a word, and punctuation that belongs to the sentence.
const ends = "\\s,;:()";
// The part of a word from its first such letter to its last.
const run = new RegExp(`[${letters}](?:[^${letters}${ends}]*[${letters}])*`, "gu");
const control = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export interface Piece {
  readonly text: string;
  // The piece may be written in another direction than the sentence.
  readonly isolated: boolean;
}

// pieces splits a sentence, so that no piece changes the order of those around it if the isolated ones are isolated. Characters that control
// the direction become escapes such as \u202e, as in the texts of the server.
export function pieces(sentence: string): Piece[] {
  const text = sentence.replace(control, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const out: Piece[] = [];
  let end = 0;
  const add = (to: number, isolated: boolean): void => {
    if (to > end) {
      out.push({ text: text.slice(end, to), isolated });
      end = to;
    }
  };
  for (const match of text.matchAll(run)) {
    add(match.index, false);
    add(match.index + match[0].length, true);
  }
  add(text.length, false);
  return out;
}

// isolated returns a sentence for an attribute, which has characters in place of elements.
export const isolated = (sentence: string): string =>
  pieces(sentence).map((p) => (p.isolated ? `\u2068${p.text}\u2069` : p.text)).join("");
