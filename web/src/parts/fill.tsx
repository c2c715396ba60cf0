// How full a node or a NUMA node is: what is requested of it, and which of that is held for pods that are not there yet.
import { bytes, cpus } from "../format";
import { Meter } from "./meter";

interface Cpu {
  whole: number;
  requested: number;
  /** Of what is requested, that of expected pods. */
  held: number;
  /** Beside it, for groups still to come. */
  kept: number;
  exclusive?: number;
  used: number | null;
  numbers?: string;
}

/** CPUs in millicores. */
export function CpuMeter({ whole, requested, held, kept, exclusive, used, numbers }: Cpu) {
  const own = Math.min(requested, 1000 * (exclusive ?? 0));
  const expected = Math.min(held, requested - own);
  const parts = [
    ...(exclusive === undefined ? [] : [{ value: own, kind: "exclusive", words: `${exclusive} exclusive` }]),
    { value: requested - own - expected, kind: "requested", words: `${cpus(requested)} of ${cpus(whole)} CPUs requested` },
    ...(held + kept > 0 ? [{ value: expected + kept, kind: "held", words: heldWords(cpus(held), cpus(kept)) }] : []),
  ];
  return <Meter label="CPU" whole={whole} parts={parts} mark={used === null ? null : { value: used, kind: "used", words: `${cpus(used)} in use` }} numbers={numbers} />;
}

function heldWords(held: string, kept: string): string {
  const parts = [held !== "0" && `${held} of them by pods that are expected`, kept !== "0" && `${kept} kept for groups still to come`];
  return parts.filter(Boolean).join(", ");
}

interface Memory {
  whole: number;
  requested: number;
  held: number;
  free: number | null;
  numbers?: string;
}

export function MemoryMeter({ whole, requested, held, free, numbers }: Memory) {
  const parts = [
    { value: requested - held, kind: "requested", words: `${bytes(requested)} of ${bytes(whole)} requested` },
    ...(held > 0 ? [{ value: held, kind: "held", words: `${bytes(held)} of it by pods that are expected` }] : []),
  ];
  return <Meter label="mem" whole={whole} parts={parts} mark={free === null ? null : { value: whole - free, kind: "used", words: `${bytes(whole - free)} in use` }} numbers={numbers} />;
}
