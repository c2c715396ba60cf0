interface Props {
  shown: number;
  known: number;
  /** As many as come with a click. */
  page: number;
  onClick: () => void;
}

/** Below the first rows of a long list; nothing where all are shown. */
export function More({ shown, known, page, onClick }: Props) {
  const left = known - shown;
  if (left <= 0) return null;
  return <button type="button" class="open" onClick={onClick}>{Math.min(page, left)} more of {left}</button>;
}
