// How far traffic goes: inside one NUMA node, between NUMA nodes, between nodes. By colour, dash and word.
import type { ComponentChildren } from "preact";
import { percent } from "../format";
import { REACHES, type Reach, type Triple } from "../types";

export const REACH_WORDS: Record<Reach, string> = {
  local: "inside one NUMA node",
  numa: "between NUMA nodes",
  node: "between nodes",
};

export function ReachBar({ share }: { share: Triple }) {
  const words = REACHES.map((reach, at) => `${percent(share[at] ?? 0)} ${REACH_WORDS[reach]}`).join(", ");
  return (
    <div class="reach-bar" role="img" aria-label={words} title={words}>
      {REACHES.map((reach, at) => (
        <span key={reach} class={`reach-${reach}`} style={{ flexGrow: share[at] ?? 0 }} />
      ))}
    </div>
  );
}

/** A place, marked by how far traffic goes to it. */
export function ReachTag({ reach, children }: { reach: Reach; children: ComponentChildren }) {
  return (
    <span class={`reach-tag reach-${reach}`} title={REACH_WORDS[reach]}>
      {children}
      <span class="hidden">, {REACH_WORDS[reach]}</span>
    </span>
  );
}

export function ReachLegend() {
  return (
    <ul class="legend" aria-label="What lines mean">
      {REACHES.map((reach) => (
        <li key={reach}>
          <svg width="34" height="10" aria-hidden="true">
            <line class={`line line-${reach}`} x1="1" y1="5" x2="33" y2="5" stroke-width="3" />
          </svg>
          {REACH_WORDS[reach]}
        </li>
      ))}
    </ul>
  );
}
