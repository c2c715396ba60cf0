// Traffic between what is shown: thick by rate, red and dashed where it crosses. Summed up between NUMA nodes, and of
// the pod in focus by itself.
import { scaleSqrt } from "d3-scale";
import { linkHorizontal, linkVertical } from "d3-shape";
import type { RefObject } from "preact";
import { rate } from "../format";
import type { LineRow, Reach, Room } from "../types";
import { useLayout, type Box } from "./layout";
import { drawn, shownLines, summed, type LinesShown } from "./sums";

interface Point {
  x: number;
  y: number;
}

interface Props {
  lines: LineRow[];
  shown: LinesShown;
  focus: string | null;
  lit: string | null;
  rooms: Room[];
  area: RefObject<HTMLDivElement | null>;
}

const THINNEST = 1;
const THICKEST = 10;

export function Lines({ lines, shown, focus, lit, rooms, area }: Props) {
  const layout = useLayout(area, rooms);
  const here = shownLines(lines, rooms, lit);
  const pods = drawn(here, shown, focus);
  const sums = shown === "summed" ? summed(here, rooms) : [];
  const width = scale(pods.map((line) => line.bytes));
  const sumWidth = scale(sums.map((sum) => sum.bytes));
  return (
    <svg class={focus ? "lines focused" : "lines"} aria-hidden="true">
      {sums.map((sum) => <Sum key={`${sum.ends.join()}`} ends={sum.ends.map((end) => layout.get(end))} bytes={sum.bytes} reach={sum.reach} width={sumWidth(sum.bytes)} />)}
      {pods.map((line) => {
        const [from, to] = line.pods.map((pod) => layout.get(pod));
        if (!from || !to) return null;
        const near = focus !== null && line.pods.includes(focus);
        return <path key={line.pods.join()} class={`line line-${line.reach}${near ? " near" : ""}`} d={curve(middle(from), middle(to))} stroke-width={width(line.bytes)} />;
      })}
    </svg>
  );
}

function scale(values: number[]): (value: number) => number {
  return scaleSqrt([0, Math.max(1, ...values)], [THINNEST, THICKEST]);
}

function Sum({ ends, bytes, reach, width }: { ends: (Box | undefined)[]; bytes: number; reach: Reach; width: number }) {
  const [from, to] = ends;
  if (!from || !to) return null;
  const { d, label } = between(from, to);
  return (
    <g class="sum">
      <path class={`line line-${reach}`} d={d} stroke-width={width} />
      <text x={label.x} y={label.y}>{rate(bytes)}</text>
    </g>
  );
}

const across = linkHorizontal<{ source: Point; target: Point }, Point>().x((point) => point.x).y((point) => point.y);
const down = linkVertical<{ source: Point; target: Point }, Point>().x((point) => point.x).y((point) => point.y);

function middle(box: Box): Point {
  return { x: (box.left + box.right) / 2, y: (box.top + box.bottom) / 2 };
}

/** From side to side where two boxes stand beside each other, else from bottom to top. */
function between(one: Box, other: Box): { d: string; label: Point } {
  const [left, right] = one.left <= other.left ? [one, other] : [other, one];
  const [upper, lower] = one.top <= other.top ? [one, other] : [other, one];
  const beside = right.left >= left.right - 1;
  const source = beside ? { x: left.right, y: middle(left).y } : { x: middle(upper).x, y: upper.bottom };
  const target = beside ? { x: right.left, y: middle(right).y } : { x: middle(lower).x, y: lower.top };
  const label = { x: (source.x + target.x) / 2, y: (source.y + target.y) / 2 - 9 };
  return { d: (beside ? across : down)({ source, target }) ?? "", label };
}

/** Bent a little where two pods stand one below the other, so that the line does not hide behind those between. */
function curve(from: Point, to: Point): string {
  if (Math.abs(from.x - to.x) > 40) return across({ source: from, target: to }) ?? "";
  const side = Math.max(from.x, to.x) + Math.min(60, 14 + Math.abs(from.y - to.y) / 4);
  return `M${from.x},${from.y}C${side},${from.y} ${side},${to.y} ${to.x},${to.y}`;
}
