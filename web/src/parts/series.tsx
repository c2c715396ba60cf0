// A group's locality over time, beside what would have been possible, by uPlot.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { percent } from "../format";
import { useThemeChange } from "../theme";
import type { GroupStory } from "../types";

const HEIGHT = 190;

interface Props {
  points: [number, number][];
  now: number | null;
  compared: GroupStory["compared"];
}

export function Series({ points, now, compared }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const values = data(points, now, compared);
  const theme = useThemeChange();
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const made = new uPlot(options(element), values, element);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [theme]);
  useEffect(() => plot.current?.setData(values), [points, now, compared]);
  const words = now === null ? "nothing is known yet" : `now ${percent(now)}, ${points.length} points`;
  return (
    <>
      <div class="series" ref={frame} role="img" aria-label={`Share inside one NUMA node over time: ${words}`} />
      <ul class="legend">
        <li><span class="key key-now" />reached</li>
        <li><span class="key key-best" />best possible now</li>
        <li><span class="key key-lowest_first" />lowest first</li>
        <li><span class="key key-spread" />spread</li>
      </ul>
    </>
  );
}

function data(points: [number, number][], now: number | null, compared: GroupStory["compared"]): uPlot.AlignedData {
  const all: [number, number][] = now === null ? points : [...points, [latest(points), now]];
  const level = (share: number | undefined) => all.map(() => share ?? null);
  return [all.map(([at]) => at), all.map(([, share]) => share), level(compared?.best), level(compared?.lowest_first), level(compared?.spread)];
}

/** Now, in seconds, but never before what was seen: this browser's clock may be behind the extender's. */
function latest(points: [number, number][]): number {
  return Math.max(Date.now() / 1000, points.at(-1)?.[0] ?? 0);
}

/** The time, with the day below it where the ticks are of several days. */
function clock(seconds: number, ticks: number[]): string {
  const fine = (ticks[1] ?? Infinity) - (ticks[0] ?? 0) < 60;
  const time = new Date(1000 * seconds).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...(fine ? { second: "2-digit" } : {}) });
  return new Set(ticks.map(day)).size > 1 ? `${time}\n${day(seconds)}` : time;
}

function day(seconds: number): string {
  return new Date(1000 * seconds).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
}

/** A custom colour as a canvas takes it. */
function resolved(element: HTMLElement, name: string): string {
  const before = element.style.color;
  element.style.color = `var(${name})`;
  const color = getComputedStyle(element).color;
  element.style.color = before;
  return color;
}

function options(element: HTMLElement): uPlot.Options {
  const value = (name: string) => resolved(element, name);
  const axis = { stroke: value("--muted"), grid: { stroke: value("--border"), width: 1 }, ticks: { stroke: value("--border"), width: 1 } };
  const flat = (name: string, dash: number[]): uPlot.Series => ({ stroke: value(name), width: 1.5, dash, points: { show: false } });
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false },
    scales: { y: { range: [0, 1.02] } },
    axes: [{ ...axis, values: (_, ticks) => ticks.map((tick) => clock(tick, ticks)) }, { ...axis, size: 58, values: (_, ticks) => ticks.map((tick) => percent(tick)) }],
    series: [
      {},
      { stroke: value("--now"), fill: value("--now-fill"), width: 2, points: { show: false } },
      flat("--best", [8, 4]),
      flat("--lowest", [2, 3]),
      flat("--spread", [1, 4]),
    ],
  };
}
