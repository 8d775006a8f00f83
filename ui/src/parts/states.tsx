// What a view shows before its answer arrives, or if it has no content.
import type { ComponentChildren } from "preact";

import type { Fault } from "../core/ask.ts";
import { Sentence } from "./sentence.tsx";

export const Loading = ({ what }: { what: string }) => (
  <p class="state" role="status">
    <span class="spinner" aria-hidden="true" /> {what}
  </p>
);

export const Empty = ({ children }: { children: ComponentChildren }) => <p class="state">{children}</p>;

export const Failed = ({ fault }: { fault: Fault }) => (
  <div class="state failed" role="alert">
    <p>
      <strong>{fault.reason === "SNAPSHOT_NOT_FOUND" ? "The server no longer holds this cluster." : "There is no answer."}</strong> <Sentence text={fault.message} />
    </p>
  </div>
);
