import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

export interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** Where each pod and each NUMA node stands in the area, measured anew when its contents or its size change. */
export function useLayout(area: RefObject<HTMLDivElement | null>, contents: unknown): Map<string, Box> {
  const [boxes, setBoxes] = useState(new Map<string, Box>());
  useLayoutEffect(() => {
    const element = area.current;
    if (!element) return;
    const measure = () => {
      const origin = element.getBoundingClientRect();
      const measured = [...element.querySelectorAll<HTMLElement>("[data-box]")].map((one): [string, Box] => {
        const { left, right, top, bottom } = one.getBoundingClientRect();
        return [one.dataset["box"] ?? "", { left: left - origin.left, right: right - origin.left, top: top - origin.top, bottom: bottom - origin.top }];
      });
      setBoxes(new Map(measured));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [area, contents]);
  return boxes;
}
