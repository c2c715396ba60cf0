import { percent } from "../format";
import type { Overview } from "../live";
import { Open } from "../parts/links";
import { Meter } from "../parts/meter";
import { ReachBar } from "../parts/reach";
import { Swatch } from "../parts/swatch";
import type { Route } from "../route";
import type { GroupRow } from "../types";
import { Head, sorted, type Column } from "./sorting";

const COLUMNS: Column<GroupRow>[] = [
  { name: "group", by: (row) => row.group },
  { name: "pods", by: (row) => row.members, number: true },
  { name: "nodes", by: (row) => row.nodes, number: true },
  { name: "NUMA nodes", by: (row) => row.numa_nodes, number: true },
  { name: "local traffic", by: (row) => row.share?.[0] ?? -1, number: true },
  { name: "how far its traffic goes", by: (row) => row.share?.[2] ?? -1 },
  { name: "pairs together, of those possible", by: (row) => (row.together ? row.together[1] - row.together[0] : -1), bar: true },
];

export function GroupsTable({ overview, route }: { overview: Overview; route: Route }) {
  const [rows, order, sort] = sorted(overview.groups, COLUMNS, { column: 1, down: true }, route.sort);
  return (
    <>
      <div class="toolbar"><h2>Groups</h2></div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Groups">
        <table class="list">
          <Head columns={COLUMNS} order={order} sort={sort} />
          <tbody>
            {rows.map((row) => (
              <tr key={row.group}>
                <th scope="row"><Swatch group={row.group} /> <Open kind="group" name={row.group} /></th>
                <td class="number">{row.members}</td>
                <td class="number">{row.nodes}</td>
                <td class="number">{row.numa_nodes}</td>
                <td class="number">{row.share ? percent(row.share[0]) : "–"}</td>
                <td>{row.share ? <ReachBar share={row.share} /> : "no traffic is known"}</td>
                <td>{row.together ? <Together now={row.together[0]} possible={row.together[1]} /> : "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {!rows.length && <p class="empty">No pod has joined a group yet: the annotation <code>group.numakin.io</code> is all it needs.</p>}
      {overview.groupsKnown > rows.length && <p class="note">The {rows.length} largest of {overview.groupsKnown} groups.</p>}
    </>
  );
}

/** The share of a group's pairs of pods that are on one NUMA node, beside what its size allows on empty machines. */
function Together({ now, possible }: { now: number; possible: number }) {
  return (
    <Meter
      label="pairs on one NUMA node"
      whole={1}
      parts={[{ value: now, kind: "requested", words: `${percent(now)} now` }]}
      mark={{ value: possible, kind: "possible", words: `${percent(possible)} possible by its size` }}
      numbers={`${percent(now)} of ${percent(possible)}`}
    />
  );
}
