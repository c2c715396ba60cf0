import type { ComponentChildren } from "preact";
import { select, type Kind } from "../route";

/** Opens the panel about something. */
export function Open({ kind, name, children }: { kind: Kind; name: string; children?: ComponentChildren }) {
  return (
    <button type="button" class="open" onClick={() => select(kind, name)}>
      {children ?? name}
    </button>
  );
}
