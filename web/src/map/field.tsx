// All nodes of a large cluster as small squares, to choose rooms from: dark by fill, marked where something is wrong.
import { useRef, useState } from "preact/hooks";
import { cpus, percent, plural } from "../format";
import { go, type Route } from "../route";
import type { NodeRow } from "../types";
import { MOST_ROOMS } from "./interest";

const CELL = 13;

export function Field({ nodes, rooms, route }: { nodes: NodeRow[]; rooms: string[]; route: Route }) {
  const [at, setAt] = useState(0);
  const [width, setWidth] = useState(900);
  const frame = useRef<HTMLDivElement>(null);
  const columns = Math.max(1, Math.floor(((frame.current?.clientWidth ?? width) - 2) / CELL));
  const lines = Math.ceil(nodes.length / columns);
  const current = nodes[Math.min(at, nodes.length - 1)];
  const open = new Set(rooms);
  const toggle = (name: string | undefined) => {
    if (!name) return;
    const chosen = route.rooms.includes(name) ? route.rooms.filter((room) => room !== name) : [...route.rooms, name].slice(-MOST_ROOMS);
    go({ rooms: chosen });
  };
  const pressed = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
    const step = steps[event.key];
    if (step) setAt(Math.max(0, Math.min(nodes.length - 1, at + step)));
    else if (event.key === "Enter" || event.key === " ") toggle(current?.name);
    else return;
    event.preventDefault();
  };
  const cellOf = (event: MouseEvent) => {
    const index = (event.target as Element).getAttribute("data-at");
    return index === null ? null : Number(index);
  };
  return (
    <section class="field" aria-label="All nodes">
      <p class="what">
        {plural(nodes.length, "node")}, dark by requested CPU; ringed: shown below; red: more traffic crosses than stays; a dot: hot.
        {" "}A click opens or closes a room.
        {route.rooms.length > 0 && <button type="button" class="open" onClick={() => go({ rooms: [] })}>Back to those where most traffic crosses</button>}
      </p>
      <div ref={(element) => { frame.current = element; if (element && element.clientWidth !== width) setWidth(element.clientWidth); }}>
        <svg
          width={columns * CELL}
          height={lines * CELL}
          tabIndex={0}
          role="application"
          aria-label="Nodes: arrow keys move, Enter opens or closes a room"
          aria-describedby="field-current"
          onKeyDown={pressed}
          onClick={(event) => { const index = cellOf(event); if (index !== null) { setAt(index); toggle(nodes[index]?.name); } }}
          onMouseOver={(event) => { const index = cellOf(event); if (index !== null) setAt(index); }}
        >
          {nodes.map((row, index) => (
            <rect
              key={row.name}
              data-at={index}
              class={`cell cell-${row.state} fill-${fill(row)}${crosses(row) ? " cell-crosses" : ""}${open.has(row.name) ? " cell-open" : ""}${index === at ? " cell-at" : ""}`}
              x={(index % columns) * CELL + 1}
              y={Math.floor(index / columns) * CELL + 1}
              width={CELL - 3}
              height={CELL - 3}
              rx="2"
            />
          ))}
          {nodes.map((row, index) => row.hot.length > 0 && (
            <circle key={`${row.name} hot`} class="cell-hot" cx={(index % columns) * CELL + CELL / 2 - 0.5} cy={Math.floor(index / columns) * CELL + CELL / 2 - 0.5} r="2.4" />
          ))}
        </svg>
      </div>
      <p id="field-current" role="status" class="what">{current && described(current)}</p>
    </section>
  );
}

/** In tenths of its CPUs. */
function fill(row: NodeRow): number {
  return Math.min(9, Math.floor((10 * row.cpu[1]) / Math.max(1, row.cpu[0])));
}

function crosses(row: NodeRow): boolean {
  return row.traffic !== null && row.traffic[1] + row.traffic[2] > row.traffic[0];
}

function described(row: NodeRow): string {
  const share = percent(row.cpu[1] / Math.max(1, row.cpu[0]));
  return `${row.name}: ${row.state}, ${cpus(row.cpu[1])} of ${cpus(row.cpu[0])} CPUs requested (${share}), ${plural(row.members, "opted-in pod")}${row.hot.length ? `, hot: NUMA ${row.hot.join(", ")}` : ""}`;
}
