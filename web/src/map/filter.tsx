import type { Overview } from "../live";
import { go } from "../route";

export function Filter({ overview, filter }: { overview: Overview; filter: string }) {
  const names = overview.groups.map((row) => row.group).sort();
  return (
    <span class="choice">
      <label for="group">Group</label>
      <select id="group" value={filter} onChange={(event) => go({ filter: event.currentTarget.value })}>
        <option value="">all</option>
        {filter && !names.includes(filter) && <option value={filter}>{filter}</option>}
        {names.map((name) => (
          <option key={name} value={name}>{name}</option>
        ))}
      </select>
    </span>
  );
}
