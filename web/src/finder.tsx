import { useEffect, useRef, useState } from "preact/hooks";
import type { Overview } from "./live";
import { select, type Kind } from "./route";

const MOST = 8;

interface Choice {
  kind: Kind;
  name: string;
}

function choices(text: string, overview: Overview): Choice[] {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const matches = (name: string) => name.toLowerCase().includes(wanted);
  const groups = overview.groups.filter((row) => matches(row.group)).map((row): Choice => ({ kind: "group", name: row.group }));
  const nodes = overview.nodes.filter((row) => matches(row.name)).map((row): Choice => ({ kind: "node", name: row.name }));
  const pod: Choice[] = wanted.includes("/") ? [{ kind: "pod", name: text.trim() }] : [];
  return [...groups.slice(0, MOST / 2), ...nodes.slice(0, MOST / 2), ...pod].slice(0, MOST);
}

/** Finds a group or a node by a part of its name, a pod by NAMESPACE/NAME. The key / leads here. */
export function Finder({ overview }: { overview: Overview }) {
  const field = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const found = choices(text, overview);
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
      setAt(Math.max(0, Math.min(found.length - 1, at + (event.key === "ArrowDown" ? 1 : -1))));
    } else if (event.key === "Enter") choose(found[at]);
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
        aria-activedescendant={found.length ? `finder-${at}` : undefined}
        aria-label="Find a group, a node, or a pod by NAMESPACE/NAME"
        placeholder="Find group, node, NAMESPACE/POD   /"
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
            aria-selected={index === at}
            onMouseDown={(event) => { event.preventDefault(); choose(choice); }}
          >
            <span class="kind">{choice.kind}</span> {choice.name}
          </li>
        ))}
      </ul>
    </search>
  );
}
