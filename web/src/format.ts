const STEPS: [number, string][] = [
  [1 << 30, "GiB"],
  [1 << 20, "MiB"],
  [1 << 10, "KiB"],
];

function digits(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1).replace(/\.0$/, "") : value.toFixed(2).replace(/\.?0+$/, "");
}

/** 3221225472 -> 3 GiB. */
export function bytes(value: number): string {
  const step = STEPS.find(([size]) => value >= size);
  return step ? `${digits(value / step[0])} ${step[1]}` : `${Math.round(value)} B`;
}

export function rate(value: number): string {
  return `${bytes(value)}/s`;
}

/** Millicores in CPUs: 1500 -> 1.5. */
export function cpus(milli: number): string {
  return digits(milli / 1000);
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

export function ago(seconds: number): string {
  if (seconds < 1) return "less than a second";
  if (seconds < 100) return `${Math.round(seconds)} s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

/** By name, node-9 before node-10. One collator: `localeCompare` makes one for each pair, which of 5,000 nodes shows. */
export const byName = new Intl.Collator("en", { numeric: true }).compare;

/** The last part of NAMESPACE/KIND/NAME or NAMESPACE/NAME. */
export function short(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1);
}

/** "0-3,8" -> 0, 1, 2, 3, 8. */
export function ids(list: string): number[] {
  return list.split(",").flatMap((part) => {
    if (!part) return [];
    const [first = 0, last = first] = part.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, at) => first + at);
  });
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

export function place(node: string, numaNodes: number[] | string): string {
  const list = typeof numaNodes === "string" ? numaNodes : numaNodes.join(", ");
  return `${node}, NUMA ${list || "any"}`;
}
