// Groups are distinguished by colour and by a code of two letters, so that no colour has to be seen.

/** Okabe and Ito's colours for all kinds of colour vision, the reds left out: red is for traffic that crosses. */
const HUES = ["#0072b2", "#009e73", "#e69f00", "#56b4e9", "#cc79a7", "#7a68c9", "#8a6d3b", "#5f7f95"];

const given = new Map<string, number>();
const codes = new Map<string, string>();

function place(group: string): number {
  const known = given.get(group);
  if (known !== undefined) return known;
  given.set(group, given.size);
  return given.size - 1;
}

/** Gives colours and codes to these in the order of their names, so that they are the same on every screen that begins with them. */
export function claim(groups: string[]): void {
  for (const group of [...groups].sort()) {
    place(group);
    code(group);
  }
}

/** The same for a group as long as the page is open. */
export function color(group: string | null): string {
  return group === null ? "var(--muted)" : (HUES[place(group) % HUES.length] ?? "");
}

/** Two letters that no other group has, while there are any. */
export function code(group: string | null): string {
  if (group === null) return "--";
  const known = codes.get(group);
  if (known) return known;
  const letters = group.slice(0, group.indexOf("/")).replace(/[^a-z0-9]/gi, "") + group.slice(group.indexOf("/") + 1).replace(/[^a-z0-9]/gi, "");
  const taken = new Set(codes.values());
  const first = (letters[0] ?? "x").toUpperCase();
  const choices = [...letters.slice(1), ..."abcdefghijklmnopqrstuvwxyz0123456789"].map((second) => first + second);
  const chosen = choices.find((choice) => !taken.has(choice)) ?? first;
  codes.set(group, chosen);
  return chosen;
}
