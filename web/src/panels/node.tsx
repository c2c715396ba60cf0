// One node: its warnings, its enforcer, and a picture of the machine with who has which CPUs.
import { ago, bytes, cpus, ids, plural, short } from "../format";
import { Answered } from "../parts/answered";
import { CpuMeter, MemoryMeter } from "../parts/fill";
import { Open } from "../parts/links";
import { ReachBar } from "../parts/reach";
import { Roster } from "../parts/roster";
import { State } from "../parts/state";
import { Swatch } from "../parts/swatch";
import type { Column } from "../tables/sorting";
import type { ContainerRow, ExpectedRow, MachineNuma, NodeStory, ThreadState } from "../types";
import { Devices, Near } from "./devices";
import { CpuPicture, CpuLegend } from "./machine";

export function NodePanel({ name, version }: { name: string; version: number }) {
  return (
    <Answered<NodeStory> path={`node?node=${encodeURIComponent(name)}`} version={version}>
      {(story) => (
        <>
          <Warnings story={story} />
          <Enforcer story={story} />
          <section>
            <h3>Machine</h3>
            <p class="note">
              {plural(story.sockets.length, "socket")}, {plural(story.numa_nodes.length, "NUMA node")}, {plural(story.cores.length, "core")}, {plural(story.caches.length, "last-level cache")}
              {story.reserved && `; CPUs ${story.reserved} are reserved`}.
            </p>
            {story.numa_nodes.map((numa) => <Numa key={numa.id} numa={numa} story={story} />)}
            <CpuLegend />
          </section>
          <Distances rows={story.numa_nodes} />
          <Devices health={story.enforcer.health} />
          <Expected rows={story.expected} />
          <Containers story={story} />
        </>
      )}
    </Answered>
  );
}

function Warnings({ story }: { story: NodeStory }) {
  if (!story.warnings.length) return <p class="fine">Nothing to warn of.</p>;
  return (
    <section>
      <h3>Warnings</h3>
      <ul class="warnings">
        {story.warnings.map((warning) => (
          <li key={warning.what}>
            <p><strong>{warning.what}</strong></p>
            <p class="what">{warning.action}</p>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Enforcer({ story }: { story: NodeStory }) {
  const { enforcer, traffic } = story;
  const total = traffic ? traffic[0] + traffic[1] + traffic[2] : 0;
  return (
    <section>
      <h3>Enforcer</h3>
      <dl class="facts">
        <dt>State</dt>
        <dd><State state={story.state} /></dd>
        <dt>Last message</dt>
        <dd>{ago(enforcer.age_seconds)} ago</dd>
        <dt>Runtime</dt>
        <dd>{enforcer.health?.runtime ?? (enforcer.registered ? "registered" : "not registered")}</dd>
        <dt>Collector</dt>
        <dd>{enforcer.health ? enforcer.health.collector : "not reported"}</dd>
        <dt>Version</dt>
        <dd>{enforcer.version}, generation {enforcer.generation}</dd>
      </dl>
      {enforcer.health && <Threads threads={enforcer.health.threads} />}
      {traffic && total > 0 && <ReachBar share={[traffic[0] / total, traffic[1] / total, traffic[2] / total]} />}
    </section>
  );
}

function Threads({ threads }: { threads: ThreadState[] }) {
  const failing = threads.filter((thread) => thread.stale || thread.error).length;
  return (
    <details class="threads" open={failing > 0}>
      <summary>{plural(threads.length, "thread")}, {failing ? `${failing} of them failing` : "all well"}</summary>
      <table>
        <thead><tr><th>thread</th><th>state</th><th class="number">failed rounds</th></tr></thead>
        <tbody>
          {threads.map((thread) => (
            <tr key={thread.name}>
              <th scope="row" class="clipped" title={thread.name}>{thread.name}</th>
              <td class={thread.stale ? "bad" : thread.error ? "warn" : ""}>
                {thread.stale ? `no good round for ${ago(thread.since_success_s)}` : thread.error ? "tries again" : "well"}
                {thread.error && `: ${thread.error}`}
              </td>
              <td class="number">{thread.failures}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

function Numa({ numa, story }: { numa: MachineNuma; story: NodeStory }) {
  const notes = [
    numa.isolated && `CPUs ${numa.isolated} isolated`,
    numa.withheld && "memory withheld",
    ...numa.hugepages.map(([size, amount]) => `${bytes(amount)} in pages of ${bytes(size)}`),
    numa.hot && "hot: no newcomers, members are let out",
    numa.stalled ? `waits for memory ${Math.round(numa.stalled * 100)} % of the time` : "",
  ].filter(Boolean);
  return (
    <div class="numa">
      <p class="numa-name">NUMA {numa.id} <span class="what">CPUs {numa.cpus || "none"}{notes.length > 0 && `; ${notes.join("; ")}`}</span></p>
      <CpuPicture numa={numa} story={story} />
      <Caches numa={numa} />
      <Near devices={story.enforcer.health?.devices.filter((device) => device.numa_node === numa.id) ?? []} />
      {numa.cpu > 0 && (
        <CpuMeter
          whole={numa.cpu}
          requested={numa.cpu_requested}
          held={numa.cpu_held}
          kept={numa.cpu_kept}
          exclusive={numa.exclusive}
          used={numa.cpu_used}
          numbers={`${cpus(numa.cpu_requested)} of ${cpus(numa.cpu)}`}
        />
      )}
      <MemoryMeter
        whole={numa.memory}
        requested={numa.memory_requested}
        held={numa.memory_held}
        free={numa.memory_free}
        numbers={`${bytes(numa.memory_requested)} of ${bytes(numa.memory)}`}
      />
    </div>
  );
}

function Caches({ numa }: { numa: MachineNuma }) {
  if (!numa.cache_domains.length) return null;
  return (
    <ul class="what near" aria-label={`Caches of NUMA ${numa.id}`}>
      {numa.cache_domains.map((domain) => (
        <li key={domain.cpus} class={domain.hot ? "warn" : ""}>
          members kept within the cache of CPUs {domain.cpus}: {cpus(domain.requested_cpu_milli)} of {ids(domain.cpus).length} CPUs requested{domain.hot && ", too busy for more"}
        </li>
      ))}
    </ul>
  );
}

function Distances({ rows }: { rows: MachineNuma[] }) {
  if (rows.length < 2) return null;
  const far = Math.max(...rows.flatMap((row) => row.distances));
  return (
    <section>
      <h3>Distances</h3>
      <div class="scroll" tabIndex={0} role="region" aria-label="Distances between NUMA nodes">
        <table class="distances">
          <thead><tr><td>NUMA</td>{rows.map((row) => <th key={row.id} scope="col">{row.id}</th>)}</tr></thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.id}>
                <th scope="row">{row.id}</th>
                {row.distances.map((distance, at) => (
                  <td key={at} class="number" style={{ "--far": `${Math.round((70 * (distance - 10)) / Math.max(1, far - 10))}%` }}>{distance}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

const EXPECTED: Column<ExpectedRow>[] = [
  { name: "pod", by: (row) => row.pod },
  { name: "group", by: (row) => row.group ?? "" },
  { name: "where", by: (row) => row.numa_nodes[0] ?? -1 },
  { name: "since it was", by: (row) => (row.bound ? "bound" : "scored") },
];

/** Pods whose room is held: they were scored best here, or are bound here, and the enforcer has not reported them. */
function Expected({ rows }: { rows: ExpectedRow[] }) {
  if (!rows.length) return null;
  return (
    <section>
      <h3>Expected</h3>
      <p class="note">Room is held for {plural(rows.length, "pod")}.</p>
      <Roster
        label="Expected pods"
        rows={rows}
        columns={EXPECTED}
        words={(row) => `${row.pod} ${row.group ?? ""}`}
        row={(row) => (
          <tr key={row.uid}>
            <th scope="row" class="clipped" title={row.pod}><Open kind="pod" name={row.pod}>{short(row.pod)}</Open></th>
            <td><Swatch group={row.group} /></td>
            <td>NUMA {row.numa_nodes.join(", ") || "any"}</td>
            <td>{row.bound ? "bound" : "scored best"}</td>
          </tr>
        )}
      />
    </section>
  );
}

const CONTAINERS: Column<ContainerRow>[] = [
  { name: "group", by: (row) => row.group ?? "" },
  { name: "pod", by: (row) => row.pod ?? "" },
  { name: "container", by: (row) => row.container },
  { name: "CPUs", by: (row) => row.cpus },
  { name: "memory of", by: (row) => row.mems },
];

function Containers({ story }: { story: NodeStory }) {
  const members = story.containers.filter((row) => row.member);
  return (
    <section>
      <h3>Containers</h3>
      <p class="note">{plural(members.length, "container")} that opted in, {story.containers_known - members.length} others.</p>
      <Roster
        label="Containers that opted in"
        rows={members}
        columns={CONTAINERS}
        words={(row) => `${row.group ?? ""} ${row.pod ?? ""} ${row.container} ${row.exclusive && "exclusive"}`}
        row={(row) => (
          <tr key={`${row.pod ?? ""} ${row.container}`}>
            <td><Swatch group={row.group} /></td>
            <th scope="row" class="clipped" title={row.pod ?? ""}>{row.pod ? <Open kind="pod" name={row.pod}>{short(row.pod)}</Open> : "–"}</th>
            <td>{row.container}</td>
            <td>{row.externally_managed ? "set by somebody else" : row.cpus || "all"}{row.exclusive && ", exclusive"}</td>
            <td>{row.mems ? `NUMA ${row.mems}` : "any"}</td>
          </tr>
        )}
      />
    </section>
  );
}
