// Which lines are drawn, and their sums between NUMA nodes.
import type { LineRow, Reach, Room } from "../types";

export const LINES_SHOWN = { summed: "summed up", pods: "between pods", crossing: "between pods, crossing", none: "none" };
export type LinesShown = keyof typeof LINES_SHOWN;

export interface Sum {
  ends: [string, string];
  bytes: number;
  reach: Reach;
}

/** With both ends here and, where a group is lit, one of them in it. */
export function shownLines(lines: LineRow[], rooms: Room[], lit: string | null): LineRow[] {
  const groups = new Map(rooms.flatMap((room) => room.pods.map((pod) => [pod.uid, pod.group] as const)));
  return lines.filter((line) => !line.elsewhere && (!lit || line.pods.some((pod) => groups.get(pod) === lit)));
}

/** The heaviest last, on top. */
export function drawn(lines: LineRow[], shown: LinesShown, focus: string | null): LineRow[] {
  const near = (line: LineRow) => focus !== null && line.pods.includes(focus);
  const wanted = (line: LineRow) => shown === "pods" || (shown === "crossing" && line.reach !== "local");
  return lines.filter((line) => near(line) || wanted(line)).reverse();
}

export function numaKey(node: string, numa: number[]): string {
  return numa.length === 1 ? `${node} ${numa[0]}` : `${node} wide`;
}

/** Of all lines between the same two NUMA nodes. */
export function summed(lines: LineRow[], rooms: Room[]): Sum[] {
  const homes = new Map(rooms.flatMap((room) => room.pods.map((pod) => [pod.uid, numaKey(room.name, pod.numa_nodes)] as const)));
  const sums = new Map<string, Sum>();
  for (const line of lines) {
    const [one = "", other = ""] = line.pods.map((pod) => homes.get(pod) ?? "").sort();
    if (one === other) continue;
    const before = sums.get(`${one} ${other}`);
    sums.set(`${one} ${other}`, { ends: [one, other], bytes: line.bytes + (before?.bytes ?? 0), reach: line.reach });
  }
  return [...sums.values()].sort((one, other) => one.bytes - other.bytes);
}

/** Bytes a second inside each NUMA node. */
export function inside(lines: LineRow[], rooms: Room[]): Map<string, number> {
  const homes = new Map(rooms.flatMap((room) => room.pods.map((pod) => [pod.uid, numaKey(room.name, pod.numa_nodes)] as const)));
  const sums = new Map<string, number>();
  for (const line of lines) {
    const home = homes.get(line.pods[0]);
    if (home && line.reach === "local") sums.set(home, line.bytes + (sums.get(home) ?? 0));
  }
  return sums;
}
