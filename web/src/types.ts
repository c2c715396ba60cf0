// What the extender answers; extender/views/page has each field.

/** Inside one NUMA node, between NUMA nodes of one node, between nodes: the order of every triple. */
export const REACHES = ["local", "numa", "node"] as const;
export type Reach = (typeof REACHES)[number];
export type Triple = [number, number, number];

export interface NodeRow {
  name: string;
  machine: string;
  state: "live" | "reconnecting" | "unregistered" | "lost" | "silent";
  numa_nodes: number;
  members: number;
  /** Millicores: capacity, requested, used. */
  cpu: [number, number, number | null];
  memory: [number, number];
  exclusive: number;
  /** Millicores: of what is requested, those of expected pods; beside it, those kept for groups still to come. */
  held: [number, number];
  /** NUMA nodes whose CPUs are nearly all in use. */
  hot: number[];
  traffic: Triple | null;
}

export interface GroupRow {
  group: string;
  members: number;
  nodes: number;
  numa_nodes: number;
  share: Triple | null;
  /** Shares of its pairs of pods on one NUMA node: now, and as its size allows; null for a group of one. */
  together: [number, number] | null;
}

export interface Changes {
  version: number;
  whole: boolean;
  nodes: NodeRow[];
  gone: string[];
  groups?: GroupRow[];
  groups_known?: number;
  traffic?: Triple;
  share?: Triple | null;
  members?: number;
  unobserved?: number;
}

export interface PodsList {
  pods: { uid: string; pod: string; group: string | null; workload: string; node: string; numa_nodes: number[]; bytes: number; share: Triple | null; unscored: string | null }[];
  pods_known: number;
}

export interface NumaRow {
  id: number;
  cpus: string;
  cpu: number;
  cpu_requested: number;
  cpu_used: number | null;
  /** Of what is requested, that of expected pods. */
  cpu_held: number;
  memory_held: number;
  /** Beside it, for groups still to come. */
  cpu_kept: number;
  exclusive: number;
  memory: number;
  memory_requested: number;
  memory_free: number | null;
  stalled: number | null;
  hot: boolean;
}

export interface PodRow {
  uid: string;
  pod: string;
  group: string | null;
  workload: string;
  numa_nodes: number[];
  cpu: number;
  memory: number;
  exclusive: number;
  let_out: number[];
  expected: boolean;
}

export interface Room {
  name: string;
  machine: string;
  numa_nodes: NumaRow[];
  pods: PodRow[];
}

export interface LineRow {
  pods: [string, string];
  bytes: number;
  messages: number;
  reach: Reach;
  elsewhere: string | null;
}

export interface Rooms {
  nodes: Room[];
  lines: LineRow[];
  lines_known: number;
}

export interface ScoredNode {
  node: string;
  score: number;
  numa_nodes?: string;
  fits?: boolean;
  decision_score?: number;
  reasons: string[];
  data_age_seconds?: number;
}

export interface Happened {
  container: string;
  event: string;
  numa_nodes: string;
  cpus: string;
  mems: string;
  score: number;
  reasons: string[];
  nomination: string;
  nominated: string;
}

export interface Peer {
  uid: string;
  pod: string;
  workload: string;
  node: string;
  numa_nodes: number[];
  reach: Reach;
  sent: number;
  received: number;
  messages: number;
  share: number;
}

export interface PodStory {
  uid: string;
  pod: string;
  summary: string;
  group: string | null;
  workload: string;
  place: { node: string; numa_nodes: number[] } | null;
  share: Triple | null;
  /** Why kube-scheduler did not ask for scores. */
  unscored: string | null;
  scored: { seconds_ago: number; nodes_scored: number; nodes: ScoredNode[] } | null;
  expected: { node: string; numa_nodes: string; bound: boolean; expires_in_seconds: number } | null;
  happened: Happened[];
  peers: Peer[];
  peers_known: number;
  moves: Happened[];
}

export interface GroupStory {
  group: string;
  reasons: { workload: string; reason: string }[];
  members: { uid: string; pod: string; workload: string; node: string; numa_nodes: number[] }[];
  members_known: number;
  workloads: { workload: string; replicas: number; places: [string, string, number][]; relay: boolean }[];
  edges: { source: string; target: string; bytes: Triple }[];
  by: "traffic" | "pairs";
  shares: Triple | null;
  now: number | null;
  compared: { best: number; lowest_first: number; spread: number } | null;
  series: [number, number][];
  /** Of a group that is cut over nodes. */
  regroup: { why: string; plan: Regrouping | null } | null;
}

/** What would bring more of a group together: pods to evict, and where each would come anew. */
export interface Regrouping {
  restarts: number;
  locality: number;
  reached: number;
  steps: { pod: string; uid: string; node: string; numa_nodes: string; to_node: string; to_numa_node: number }[];
}

export interface MachineNuma extends NumaRow {
  distances: number[];
  isolated: string;
  hugepages: [number, number][];
  withheld: boolean;
  /** Of last-level caches (or clusters) within which members are kept. */
  cache_domains: { cpus: string; requested_cpu_milli: number; hot: boolean }[];
}

export interface ContainerRow {
  pod: string | null;
  group: string | null;
  container: string;
  cpus: string;
  mems: string;
  exclusive: string;
  externally_managed: boolean;
  member: boolean;
}

/** A pod that was scored or bound and not reported yet. */
export interface ExpectedRow {
  uid: string;
  pod: string;
  group: string | null;
  numa_nodes: number[];
  bound: boolean;
}

export interface ThreadState {
  name: string;
  since_success_s: number;
  stale: boolean;
  failures: number;
  error: string;
}

export interface DeviceRow {
  address: string;
  kind: string;
  driver: string;
  names: string[];
  numa_node: number | null;
}

export interface Health {
  collector: string;
  runtime: string;
  threads: ThreadState[];
  devices: DeviceRow[];
  devices_left_out: number;
}

export interface NodeStory {
  name: string;
  machine: string;
  state: NodeRow["state"];
  numa_nodes: MachineNuma[];
  sockets: string[];
  caches: string[];
  cores: string[];
  reserved: string;
  containers: ContainerRow[];
  containers_known: number;
  expected: ExpectedRow[];
  traffic: Triple | null;
  enforcer: {
    connected: boolean;
    registered: boolean;
    age_seconds: number;
    version: string;
    session: string;
    generation: number;
    health: Health | null;
  };
  warnings: { what: string; action: string }[];
}
