import { useState } from "preact/hooks";
import { bytes, cpus } from "../format";
import type { Overview } from "../live";
import { NAMESPACE } from "../namespace";
import { CpuMeter, MemoryMeter } from "../parts/fill";
import { Open } from "../parts/links";
import { More } from "../parts/more";
import { State } from "../parts/state";
import type { Route } from "../route";
import type { NodeRow } from "../types";
import { Head, sorted, type Column } from "./sorting";

const PAGE = 200;

const COLUMNS: Column<NodeRow>[] = [
  { name: "node", by: (row) => row.name },
  { name: "state", by: (row) => row.state },
  { name: "NUMA nodes", by: (row) => row.numa_nodes, number: true },
  { name: "opted-in pods", by: (row) => row.members, number: true },
  { name: "CPUs requested", by: (row) => row.cpu[1] / Math.max(1, row.cpu[0]), bar: true },
  { name: "held", by: (row) => row.held[0] + row.held[1], number: true },
  { name: "exclusive", by: (row) => row.exclusive, number: true },
  { name: "memory requested", by: (row) => row.memory[1] / Math.max(1, row.memory[0]), bar: true },
  { name: "hot NUMA nodes", by: (row) => row.hot.length, bar: true },
];

export function NodesTable({ overview, route }: { overview: Overview; route: Route }) {
  const [rows, order, sort] = sorted(overview.nodes, COLUMNS, { column: 0, down: false }, route.sort);
  const [pages, setPages] = useState(1);
  const shown = rows.slice(0, pages * PAGE);
  return (
    <>
      <div class="toolbar"><h2>Nodes</h2></div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Nodes">
        <table class="list">
          <Head columns={COLUMNS} order={order} sort={sort} />
          <tbody>
            {shown.map((row) => (
              <tr key={row.name}>
                <th scope="row"><Open kind="node" name={row.name} /></th>
                <td><State state={row.state} /></td>
                <td class="number">{row.numa_nodes}</td>
                <td class="number">{row.members}</td>
                <td>
                  <CpuMeter whole={row.cpu[0]} requested={row.cpu[1]} held={row.held[0]} kept={row.held[1]} used={row.cpu[2]} numbers={`${cpus(row.cpu[1])} of ${cpus(row.cpu[0])}`} />
                </td>
                <td class="number" title="CPUs held for pods that are expected, and for groups still to come">{cpus(row.held[0] + row.held[1])}</td>
                <td class="number">{row.exclusive}</td>
                <td>
                  <MemoryMeter whole={row.memory[0]} requested={row.memory[1]} held={0} free={null} numbers={`${bytes(row.memory[1])} of ${bytes(row.memory[0])}`} />
                </td>
                <td class={row.hot.length ? "warn" : ""}>{row.hot.join(", ") || "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {!rows.length && <p class="empty">No enforcer has reported a node yet. <code>kubectl -n {NAMESPACE} get pods</code> shows whether they run.</p>}
      <More shown={shown.length} known={rows.length} page={PAGE} onClick={() => setPages(pages + 1)} />
    </>
  );
}
