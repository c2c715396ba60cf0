import { useEffect, useState } from "preact/hooks";

type Theme = "auto" | "light" | "dark";
const NEXT: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };
const CHANGED = "numakin-theme";
const KEY = "numakin-theme";

function stored(): Theme {
  const value = localStorage.getItem(KEY);
  return value === "light" || value === "dark" ? value : "auto";
}

/** Light, dark, or as the system has it. */
export function ThemeSwitch() {
  const [theme, setTheme] = useState(stored);
  useEffect(() => {
    localStorage.setItem(KEY, theme);
    document.documentElement.dataset["theme"] = theme;
    dispatchEvent(new Event(CHANGED));
  }, [theme]);
  return (
    <button type="button" class="quiet" onClick={() => setTheme(NEXT[theme])} title={`Theme: ${theme}; press for ${NEXT[theme]}`}>
      <span aria-hidden="true">{theme === "light" ? "☀" : theme === "dark" ? "☾" : "◐"}</span>
      <span class="hidden">Theme: {theme}</span>
    </button>
  );
}

/** A number that changes with the colours, for what does not follow them by itself. */
export function useThemeChange(): number {
  const [count, setCount] = useState(0);
  useEffect(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => setCount((before) => before + 1);
    dark.addEventListener("change", changed);
    addEventListener(CHANGED, changed);
    return () => {
      dark.removeEventListener("change", changed);
      removeEventListener(CHANGED, changed);
    };
  }, []);
  return count;
}
