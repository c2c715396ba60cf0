import { useAnswer } from "../api";
import { percent, plural, rate, short } from "../format";
import type { Overview } from "../live";
import { Open } from "../parts/links";
import { Swatch } from "../parts/swatch";
import { replace, type Route } from "../route";
import type { PodsList } from "../types";
import { Head, sorted, type Column } from "./sorting";

type Row = PodsList["pods"][number];

const COLUMNS: Column<Row>[] = [
  { name: "pod", by: (row) => row.pod },
  { name: "group", by: (row) => row.group ?? "" },
  { name: "workload", by: (row) => row.workload },
  { name: "node", by: (row) => row.node },
  { name: "NUMA node", by: (row) => row.numa_nodes[0] ?? -1 },
  { name: "traffic", by: (row) => row.bytes, number: true },
  { name: "local", by: (row) => row.share?.[0] ?? -1, number: true },
];

export function PodsTable({ overview, route }: { overview: Overview; route: Route }) {
  const { value, error } = useAnswer<PodsList>(`pods?text=${encodeURIComponent(route.text)}`, overview.version);
  const [rows, order, sort] = sorted(value?.pods ?? [], COLUMNS, { column: 0, down: false }, route.sort);
  return (
    <>
      <div class="toolbar">
        <h2>Pods</h2>
        <span class="choice">
          <label for="text">Search</label>
          <input id="text" type="search" value={route.text} placeholder="name, workload, group, node" onInput={(event) => replace({ text: event.currentTarget.value })} />
        </span>
        {value && <p class="what" role="status">{plural(value.pods_known, "opted-in pod")}{route.text && " found"}</p>}
      </div>
      {error && <p class="error" role="alert">{error}</p>}
      <div class="scroll" tabIndex={0} role="region" aria-label="Pods">
        <table class="list">
          <Head columns={COLUMNS} order={order} sort={sort} />
          <tbody>
            {rows.map((row) => (
              <tr key={row.uid}>
                <th scope="row"><Open kind="pod" name={row.pod} />{row.unscored && <> <span class="tag" title={row.unscored}>not scored</span></>}</th>
                <td>{row.group ? <><Swatch group={row.group} /> <Open kind="group" name={row.group} /></> : "none yet"}</td>
                <td>{short(row.workload) || "–"}</td>
                <td><Open kind="node" name={row.node} /></td>
                <td>{row.numa_nodes.join(", ") || "any"}</td>
                <td class="number">{row.bytes ? rate(row.bytes) : "–"}</td>
                <td class="number">{row.share ? percent(row.share[0]) : "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {value && !rows.length && <Empty text={route.text} />}
      {value && value.pods_known > rows.length && <p class="note">The first {rows.length}, by name, of {value.pods_known}: search for the others.</p>}
    </>
  );
}

function Empty({ text }: { text: string }) {
  if (!text) return <p class="empty">No pod has opted in yet: the annotation <code>group.numakin.io</code> in a pod template is all it needs.</p>;
  return (
    <p class="empty">
      No opted-in pod has {text.trim().includes(" ") ? "these words" : "this"} in its name, workload, group or node.{" "}
      <button type="button" class="open" onClick={() => replace({ text: "" })}>Show all</button>
    </p>
  );
}
