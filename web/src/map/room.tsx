import { memo } from "preact/compat";
import { code, color } from "../colors";
import { bytes, cpus, plural, rate, short } from "../format";
import { CpuMeter, MemoryMeter } from "../parts/fill";
import { Open } from "../parts/links";
import { ReachBar } from "../parts/reach";
import { State } from "../parts/state";
import { select } from "../route";
import type { NodeRow, NumaRow, PodRow, Room } from "../types";
import { numaKey } from "./sums";

interface Shown {
  named: boolean;
  selected: string | null;
  near: Set<string> | null;
  lit: string | null;
  hover: (pod: string | null) => void;
}

interface Props extends Shown {
  room: Room;
  row: NodeRow | undefined;
  /** Bytes a second inside each NUMA node. */
  local: Map<string, number>;
}

export function RoomCard({ room, row, local, ...shown }: Props) {
  const pods = new Map<number, PodRow[]>(room.numa_nodes.map((numa) => [numa.id, []]));
  for (const pod of room.pods) if (pod.numa_nodes.length === 1) pods.get(pod.numa_nodes[0] ?? -1)?.push(pod);
  const members = (numa: NumaRow) => pods.get(numa.id) ?? [];
  const [taken, free] = [room.numa_nodes.filter((numa) => members(numa).length), room.numa_nodes.filter((numa) => !members(numa).length)];
  const wide = room.pods.filter((pod) => pod.numa_nodes.length !== 1);
  const total = row?.traffic?.reduce((sum, part) => sum + part, 0) ?? 0;
  return (
    <section class={`room room-${row?.state ?? "live"}`} aria-label={`Node ${room.name}`}>
      <header>
        <h3><Open kind="node" name={room.name} /></h3>
        <span class="machine">{room.machine !== room.name ? room.machine : plural(room.numa_nodes.length, "NUMA node")}</span>
        {row && row.state !== "live" && <State state={row.state} />}
      </header>
      {row?.traffic && total > 0 && <ReachBar share={[row.traffic[0] / total, row.traffic[1] / total, row.traffic[2] / total]} />}
      <div class={`numa-nodes${taken.length === 1 ? " single" : ""}${row?.traffic?.[1] ? " crossed" : ""}`}>
        {taken.map((numa) => (
          <Numa key={numa.id} node={room.name} numa={numa} pods={members(numa)} local={local.get(numaKey(room.name, [numa.id])) ?? 0} {...shown} />
        ))}
      </div>
      <div class="numa-nodes small">
        {free.map((numa) => <Numa key={numa.id} node={room.name} numa={numa} pods={[]} local={0} {...shown} />)}
      </div>
      {wide.length > 0 && (
        <div class="wide" data-box={`${room.name} wide`}>
          <p class="what">over several NUMA nodes</p>
          <Pods pods={wide} {...shown} />
        </div>
      )}
    </section>
  );
}

function Numa({ node, numa, pods, local, ...shown }: { node: string; numa: NumaRow; pods: PodRow[]; local: number } & Shown) {
  return (
    <div class={numa.hot || (numa.stalled && numa.stalled > 0.1) ? "numa stalled" : "numa"} role="group" aria-label={`NUMA node ${numa.id}, ${plural(pods.length, "pod")}`} data-box={numaKey(node, [numa.id])}>
      <p class="numa-name">
        NUMA {numa.id}{numa.cpu ? "" : " (memory only)"}
        {numa.hot && <span class="what" title="its CPUs are nearly all in use while others are not: no newcomers, and members are let out"> hot</span>}
        {local > 0 && <span class="inside" title="traffic that stays inside this NUMA node">{rate(local)} inside</span>}
      </p>
      {numa.cpu > 0 && (
        <CpuMeter whole={numa.cpu} requested={numa.cpu_requested} held={numa.cpu_held} kept={numa.cpu_kept} exclusive={numa.exclusive} used={numa.cpu_used} />
      )}
      <MemoryMeter whole={numa.memory} requested={numa.memory_requested} held={numa.memory_held} free={numa.memory_free} />
      {pods.length > 0 && <Pods pods={pods} {...shown} />}
    </div>
  );
}

const Pods = memo(function Pods({ pods, named, ...shown }: { pods: PodRow[] } & Shown) {
  const sorted = [...pods].sort((one, other) => (one.group ?? "").localeCompare(other.group ?? "") || one.workload.localeCompare(other.workload));
  return (
    <div class={named ? "pods" : "pods dots"}>
      {sorted.map((pod) => (
        <Pod key={pod.uid} pod={pod} named={named} {...shown} />
      ))}
    </div>
  );
});

function Pod({ pod, named, selected, near, lit, hover }: { pod: PodRow } & Shown) {
  const dim = near ? !near.has(pod.uid) : lit !== null && pod.group !== lit;
  const marks = [dim && "dim", pod.uid === selected && "selected", pod.expected && "expected", pod.exclusive > 0 && "exclusive"];
  const words = [
    pod.pod,
    pod.group ? `group ${pod.group}` : "no group yet",
    `${cpus(pod.cpu)} CPUs${pod.exclusive ? `, ${pod.exclusive} exclusive` : ""}, ${bytes(pod.memory)}`,
    pod.expected ? "expected, not reported yet" : "",
    pod.let_out.length ? `let out to NUMA ${pod.let_out.join(", ")} while its home is hot` : "",
  ].filter(Boolean).join("; ");
  return (
    <button
      type="button"
      class={["pod", ...marks.filter(Boolean)].join(" ")}
      style={{ "--group": color(pod.group) }}
      data-box={pod.uid}
      aria-label={words}
      aria-pressed={pod.uid === selected}
      title={words}
      onClick={() => select("pod", pod.pod)}
      onMouseEnter={() => hover(pod.uid)}
      onMouseLeave={() => hover(null)}
      onFocus={() => hover(pod.uid)}
      onBlur={() => hover(null)}
    >
      <span class="code" aria-hidden="true">{code(pod.group)}</span>
      {named && <span class="name" aria-hidden="true">{short(pod.workload || pod.pod)}</span>}
    </button>
  );
}
