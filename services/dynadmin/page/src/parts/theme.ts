// Light, dark, or the system's setting. Stored in this browser.

const KEY = "dynadmin.theme";
const THEMES = ["system", "light", "dark"] as const;

export function theme(): (typeof THEMES)[number] {
  const kept = localStorage.getItem(KEY);
  return THEMES.find((each) => each === kept) ?? "system";
}

export function nextTheme(): void {
  const next = THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]!;
  localStorage.setItem(KEY, next);
  show();
}

export function show(): void {
  const chosen = theme();
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

show();
