const STEPS: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** Arrow keys lead from the pod in focus to the nearest one in their direction. */
export function arrowed(event: KeyboardEvent, area: HTMLElement | null): void {
  const step = STEPS[event.key];
  const from = event.target as HTMLElement;
  if (!step || !area || !from.matches(".pod")) return;
  const here = center(from);
  let best: HTMLElement | null = null;
  let least = Infinity;
  for (const pod of area.querySelectorAll<HTMLElement>(".pod")) {
    const there = center(pod);
    const dx = there.x - here.x;
    const dy = there.y - here.y;
    const along = dx * step[0] + dy * step[1];
    const beside = Math.abs(dx * step[1]) + Math.abs(dy * step[0]);
    const far = along + 3 * beside;
    if (pod !== from && along > 4 && far < least) {
      best = pod;
      least = far;
    }
  }
  if (best) {
    event.preventDefault();
    best.focus();
  }
}

function center(element: HTMLElement): { x: number; y: number } {
  const box = element.getBoundingClientRect();
  return { x: box.left + box.width / 2, y: box.top + box.height / 2 };
}
