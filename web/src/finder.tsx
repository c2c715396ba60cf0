import { useEffect, useRef, useState } from "preact/hooks";
import { useAnswer } from "./api";
import { short } from "./format";
import type { Overview } from "./live";
import { select, type Kind } from "./route";
import type { PodsList } from "./types";

/** Of each kind. */
const MOST = 5;

interface Choice {
  kind: Kind;
  name: string;
}

function choices(text: string, overview: Overview, pods: PodsList | null): Choice[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  /** What is called just this leads, however many have it in their names. */
  const called = (name: string) => Number(name === text || short(name) === text);
  const first = (kind: Kind, names: string[]) =>
    names.filter((name) => words.every((word) => name.toLowerCase().includes(word))).sort((one, other) => called(other) - called(one)).slice(0, MOST).map((name): Choice => ({ kind, name }));
  return [
    ...first("group", overview.groups.map((row) => row.group)),
    ...first("node", overview.nodes.map((row) => row.name)),
    ...(pods?.pods ?? []).slice(0, MOST).map((row): Choice => ({ kind: "pod", name: row.pod })),
  ].sort((one, other) => called(other.name) - called(one.name));
}

/** Finds a pod, a group or a node by parts of its name. The key / leads here. */
export function Finder({ overview }: { overview: Overview }) {
  const field = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const wanted = text.trim();
  const answer = useAnswer<PodsList>(wanted ? `pods?text=${encodeURIComponent(wanted)}` : null, overview.version);
  const found = choices(wanted, overview, answer.value);
  const chosen = Math.min(at, found.length - 1);  // some may have gone since
  const asked = wanted !== "" && answer.value === null && !answer.error;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.target instanceof HTMLInputElement) return;
      event.preventDefault();
      field.current?.focus();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  const choose = (choice: Choice | undefined) => {
    if (!choice) return;
    setText("");
    field.current?.blur();
    select(choice.kind, choice.name);
  };
  const pressed = (event: KeyboardEvent) => {
    if (event.key === "Escape") {
      setText("");
      event.stopPropagation();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setAt(Math.max(0, Math.min(found.length - 1, chosen + (event.key === "ArrowDown" ? 1 : -1))));
    } else if (event.key === "Enter") choose(found[chosen] ?? named(wanted));
  };
  return (
    <search class="finder">
      <input
        ref={field}
        type="search"
        role="combobox"
        list={undefined}
        aria-expanded={found.length > 0}
        aria-controls="finder-choices"
        aria-activedescendant={found.length ? `finder-${chosen}` : undefined}
        aria-label="Find a pod, a group or a node"
        placeholder="Find pod, group, node   /"
        value={text}
        onInput={(event) => { setText(event.currentTarget.value); setAt(0); }}
        onKeyDown={pressed}
      />
      <ul id="finder-choices" role="listbox" aria-label="What fits" hidden={!found.length}>
        {found.map((choice, index) => (
          <li
            key={`${choice.kind} ${choice.name}`}
            id={`finder-${index}`}
            role="option"
            aria-selected={index === chosen}
            onMouseDown={(event) => { event.preventDefault(); choose(choice); }}
          >
            <span class="kind">{choice.kind}</span> {choice.name}
          </li>
        ))}
      </ul>
      {wanted && !found.length && (
        <p class="nothing" role="status">{asked ? "Searching…" : answer.error || "No pod that opted in, no group and no node has this in its name."}</p>
      )}
    </search>
  );
}

/** A pod that the list does not have, one that was scored and is nowhere for instance, can be named in full. */
function named(text: string): Choice | undefined {
  return /^[^\s/]+\/[^\s/]+$/.test(text) ? { kind: "pod", name: text } : undefined;
}
