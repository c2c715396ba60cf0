import { code, color } from "../colors";

/** A group's colour with its two letters. */
export function Swatch({ group }: { group: string | null }) {
  return (
    <span class="swatch" style={{ "--group": color(group) }} title={group ?? "no group yet"}>
      {code(group)}
    </span>
  );
}
