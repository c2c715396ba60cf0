import { byName } from "../format";
import type { NodeRow } from "../types";

/** Rooms at once: more are neither read nor laid out well. */
export const MOST_ROOMS = 24;
const UNASKED = 12;

function crossing(row: NodeRow): number {
  return row.traffic ? row.traffic[1] + row.traffic[2] : 0;
}

/** The nodes to show as rooms: those that were chosen; a group's homes; all, or those where most traffic crosses. */
export function interesting(nodes: NodeRow[], chosen: string[], homes: string[] | null, also: string): string[] {
  const known = new Set(nodes.map((row) => row.name));
  const first = [...(also ? [also] : []), ...chosen].filter((name) => known.has(name));
  const wanted = homes ?? (chosen.length ? [] : usual(nodes));
  return [...new Set([...wanted, ...first])].filter((name) => known.has(name)).slice(0, MOST_ROOMS).sort(byName);
}

function usual(nodes: NodeRow[]): string[] {
  if (nodes.length <= MOST_ROOMS) return nodes.map((row) => row.name);
  return nodes
    .filter((row) => row.members)
    .sort((one, other) => crossing(other) - crossing(one) || other.members - one.members)
    .slice(0, UNASKED)
    .map((row) => row.name);
}
