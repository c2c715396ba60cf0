// A group's workloads as a graph, laid out in layers by dagre: who serves stands right of who asks.
import { graphlib, layout } from "@dagrejs/dagre";
import { scaleSqrt } from "d3-scale";
import { curveBasis, line } from "d3-shape";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { color } from "../colors";
import { percent, rate, short } from "../format";
import { REACHES, type GroupStory, type Reach, type Triple } from "../types";

const WIDTH = 134;
const HEIGHT = 40;

interface Point {
  x: number;
  y: number;
}

interface Placed {
  width: number;
  height: number;
  nodes: { workload: string; x: number; y: number; inside: boolean; words: string; note: string }[];
  edges: { key: string; points: Point[]; bytes: Triple; words: string }[];
}

function placed(story: GroupStory): Placed {
  const graph = new graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 12, ranksep: 46, marginx: 4, marginy: 6 });
  graph.setDefaultEdgeLabel(() => ({}));
  const own = new Map(story.workloads.map((row) => [row.workload, row]));
  for (const workload of new Set([...own.keys(), ...story.edges.flatMap((edge) => [edge.source, edge.target])])) {
    graph.setNode(workload, { width: WIDTH, height: HEIGHT });
  }
  for (const edge of story.edges) if (edge.source !== edge.target) graph.setEdge(edge.source, edge.target);
  layout(graph);
  const size = graph.graph();
  return {
    width: size.width ?? 0,
    height: size.height ?? 0,
    nodes: graph.nodes().map((workload) => {
      const { x = 0, y = 0 } = graph.node(workload) as Partial<Point>;
      const row = own.get(workload);
      const spots = row ? new Set(row.places.map(([node, numa]) => `${node} ${numa}`)).size : 0;
      const note = !row ? "another group" : row.relay ? "relay" : `${row.replicas} on ${spots} NUMA ${spots === 1 ? "node" : "nodes"}`;
      return { workload, x, y, inside: row !== undefined, words: `${workload}: ${note}`, note };
    }),
    edges: story.edges
      .filter((edge) => edge.source !== edge.target)
      .map((edge) => ({
        key: `${edge.source} ${edge.target}`,
        points: (graph.edge(edge.source, edge.target) as { points: Point[] }).points,
        bytes: edge.bytes,
        words: `${short(edge.source)} and ${short(edge.target)}: ${rate(total(edge.bytes))}, ${percent(edge.bytes[0] / Math.max(1e-9, total(edge.bytes)))} inside one NUMA node`,
      })),
  };
}

function total(bytes: Triple): number {
  return bytes[0] + bytes[1] + bytes[2];
}

/** How far most of it goes. */
function mostly(bytes: Triple): Reach {
  return REACHES[bytes.indexOf(Math.max(...bytes))] ?? "local";
}

const path = line<Point>((point) => point.x, (point) => point.y).curve(curveBasis);

export function WorkloadGraph({ story }: { story: GroupStory }) {
  const drawn = useMemo(() => placed(story), [story]);
  const width = scaleSqrt([0, Math.max(1, ...drawn.edges.map((edge) => total(edge.bytes)))], [0.8, 8]);
  const frame = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = frame.current;
    const first = drawn.nodes.reduce((best, node) => (node.x < best.x ? node : best), drawn.nodes[0] ?? { x: 0, y: 0 });
    element?.scrollTo(0, first.y - element.clientHeight / 2);
  }, [story.group]);
  if (!story.edges.length) return <p class="empty">No traffic of this group is known yet.</p>;
  return (
    <div class="scroll graph" ref={frame} tabIndex={0} role="region" aria-label="Workloads and their traffic">
      <svg width={drawn.width} height={drawn.height} role="img" aria-label={`${drawn.nodes.length} workloads, ${drawn.edges.length} of their pairs talk: ${drawn.edges.slice(0, 5).map((edge) => edge.words).join("; ")}`}>
        {drawn.edges.map((edge) => (
          <path key={edge.key} class={`line line-${mostly(edge.bytes)}`} d={path(edge.points) ?? ""} stroke-width={width(total(edge.bytes))}>
            <title>{edge.words}</title>
          </path>
        ))}
        {drawn.nodes.map((node) => (
          <g key={node.workload} class={node.inside ? "workload" : "workload outside"} transform={`translate(${node.x - WIDTH / 2},${node.y - HEIGHT / 2})`} style={{ "--group": color(node.inside ? story.group : null) }}>
            <title>{node.words}</title>
            <rect width={WIDTH} height={HEIGHT} rx="7" />
            <rect class="edge" width="5" height={HEIGHT} rx="2" />
            <text x="12" y="17">{clipped(short(node.workload), 16)}</text>
            <text x="12" y="32" class="what">{clipped(node.note, 18)}</text>
          </g>
        ))}
      </svg>
    </div>
  );
}

function clipped(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
