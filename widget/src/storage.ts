/** The browser's storage on the host page's origin. Without one (in a sandbox), nothing is stored. */

type Store = "sessionStorage" | "localStorage"; // for this tab, or for longer

export function stored<T>(key: string, where: Store = "sessionStorage"): T | null {
  try {
    return JSON.parse(window[where].getItem(key) ?? "null") as T | null;
  } catch {
    return null;
  }
}

export function store(key: string, value: unknown, where: Store = "sessionStorage"): void {
  try {
    if (value === null) window[where].removeItem(key);
    else window[where].setItem(key, JSON.stringify(value));
  } catch {
    // See above.
  }
}
