// Every CPU of a NUMA node as a square: SMT siblings one above the other, cores of one last-level cache side by side.
import { useMemo } from "preact/hooks";
import { color } from "../colors";
import { ids } from "../format";
import type { ContainerRow, MachineNuma, NodeStory } from "../types";

const CELL = 11;
const GAP = 8;
const PER_LINE = 40;

interface Cpu {
  id: number;
  x: number;
  y: number;
  kind: "exclusive" | "reserved" | "isolated" | "shared";
  owner: ContainerRow | undefined;
}

interface Picture {
  cpus: Cpu[];
  caches: { x: number; y: number; width: number; height: number; words: string }[];
  width: number;
  height: number;
}

function drawn(numa: MachineNuma, story: NodeStory): Picture {
  const here = new Set([...ids(numa.cpus), ...ids(numa.isolated)]);
  const isolated = new Set(ids(numa.isolated));
  const reserved = new Set(ids(story.reserved));
  const owners = new Map(story.containers.flatMap((row) => ids(row.exclusive).map((cpu) => [cpu, row] as const)));
  const cores = story.cores.map(ids).filter((core) => here.has(core[0] ?? -1));
  const cached = story.caches.map(ids).filter((cache) => cache.some((cpu) => here.has(cpu)));
  const blocks = cached.length ? cached.map((cache) => cores.filter((core) => cache.includes(core[0] ?? -1))) : [cores];
  const siblings = Math.max(1, ...cores.map((core) => core.length));
  const picture: Picture = { cpus: [], caches: [], width: 0, height: 0 };
  let [x, y] = [GAP / 2, GAP / 2];
  for (const block of blocks) {
    const columns = Math.min(block.length, PER_LINE);
    if (x > GAP && x + columns * CELL > PER_LINE * CELL + GAP) [x, y] = [GAP / 2, y + siblings * CELL + GAP];
    const lines = Math.ceil(block.length / PER_LINE);
    for (const [at, core] of block.entries()) {
      for (const [sibling, id] of core.entries()) {
        const owner = owners.get(id);
        picture.cpus.push({
          id,
          x: x + (at % PER_LINE) * CELL,
          y: y + (Math.floor(at / PER_LINE) * siblings + sibling) * CELL,
          kind: owner ? "exclusive" : reserved.has(id) ? "reserved" : isolated.has(id) ? "isolated" : "shared",
          owner,
        });
      }
    }
    const height = lines * siblings * CELL;
    picture.caches.push({ x: x - 2, y: y - 2, width: columns * CELL + 3, height: height + 3, words: `${block.length} cores share a last-level cache` });
    picture.width = Math.max(picture.width, x + columns * CELL + GAP / 2);
    picture.height = Math.max(picture.height, y + height + GAP / 2);
    x += columns * CELL + GAP;
    if (lines > 1) [x, y] = [GAP / 2, y + height + GAP];
  }
  return picture;
}

export function CpuPicture({ numa, story }: { numa: MachineNuma; story: NodeStory }) {
  const picture = useMemo(() => drawn(numa, story), [numa, story]);
  if (!picture.cpus.length) return null;
  const owned = picture.cpus.filter((cpu) => cpu.owner).length;
  return (
    <svg class="cpus" viewBox={`0 0 ${picture.width} ${picture.height}`} style={{ maxWidth: `${picture.width * 1.1}px` }} role="img" aria-label={`${picture.cpus.length} CPUs, ${owned} of them exclusive, ${picture.caches.length} last-level caches`}>
      {picture.caches.map((cache, at) => (
        <rect key={at} class="cache" x={cache.x} y={cache.y} width={cache.width} height={cache.height} rx="3"><title>{cache.words}</title></rect>
      ))}
      {picture.cpus.map((cpu) => (
        <rect key={cpu.id} class={`cpu cpu-${cpu.kind}`} x={cpu.x} y={cpu.y} width={CELL - 2} height={CELL - 2} rx="1.5" style={cpu.owner ? { "--group": color(cpu.owner.group) } : undefined}>
          <title>{`CPU ${cpu.id}: ${cpu.owner ? `exclusive to ${cpu.owner.pod}, ${cpu.owner.container}` : cpu.kind}`}</title>
        </rect>
      ))}
    </svg>
  );
}

export function CpuLegend() {
  return (
    <ul class="legend" aria-label="CPUs">
      {(["shared", "exclusive", "reserved", "isolated"] as const).map((kind) => (
        <li key={kind}>
          <svg width="12" height="12" aria-hidden="true"><rect class={`cpu cpu-${kind}`} width="10" height="10" x="1" y="1" rx="1.5" /></svg>
          {kind}
        </li>
      ))}
      <li>framed: one last-level cache; one above the other: siblings of a core</li>
    </ul>
  );
}
