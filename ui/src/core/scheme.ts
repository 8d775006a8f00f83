// The colours of the page and of the documents: those of the system, light or dark. The browser stores the choice.

const schemes = ["system", "light", "dark"] as const;

export type Scheme = (typeof schemes)[number];

// kept returns the choice that the browser stores.
export function kept(): Scheme {
  try {
    return schemes.find((s) => s === localStorage.getItem("scheme")) ?? "system";
  } catch {
    return "system";
  }
}

// apply shows a choice, and lets the browser store it.
export function apply(scheme: Scheme): void {
  document.documentElement.dataset["scheme"] = scheme;
  try {
    localStorage.setItem("scheme", scheme);
  } catch {
    // If the browser stores nothing, the choice lasts until the page is left.
  }
}

// after returns the choice that follows.
export const after = (scheme: Scheme): Scheme => schemes[(schemes.indexOf(scheme) + 1) % schemes.length] ?? "system";

const words = { system: "same as the system", light: "light", dark: "dark" };
const signs = { system: "◐", light: "☀", dark: "☾" };

// sign is what a button for the colours shows, label what it is called.
export const sign = (scheme: Scheme): string => signs[scheme];
export const label = (scheme: Scheme): string => `Colours: ${words[scheme]}. Change to ${words[after(scheme)]}`;
export const title = (scheme: Scheme): string => `Colours: ${words[scheme]}`;
