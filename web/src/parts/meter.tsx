interface Part {
  value: number;
  kind: string;
  words: string;
}

interface Props {
  label: string;
  /** Drawn one after the other, of `whole`. */
  parts: Part[];
  whole: number;
  /** Where its live use is. */
  mark?: Part | null;
  /** What is written beside the bar. */
  numbers?: string;
}

/** How full something is. */
export function Meter({ label, parts, whole, mark, numbers }: Props) {
  const words = [...parts, ...(mark ? [mark] : [])].map((part) => part.words).join(", ");
  const share = (value: number) => `${Math.min(100, whole ? (100 * value) / whole : 0)}%`;
  return (
    <div class="meter" role="img" aria-label={`${label}: ${words}`} title={`${label}: ${words}`}>
      <span class="meter-label" aria-hidden="true">{label}</span>
      <span class="meter-bar" aria-hidden="true">
        {parts.map((part) => (
          <span key={part.kind} class={`meter-part meter-${part.kind}`} style={{ width: share(part.value) }} />
        ))}
        {mark && <span class="meter-mark" style={{ left: share(mark.value) }} />}
      </span>
      {numbers && <span class="meter-numbers" aria-hidden="true">{numbers}</span>}
    </div>
  );
}
