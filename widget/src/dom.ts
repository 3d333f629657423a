/** Small pieces of DOM, made node by node: no HTML is ever parsed, so Trusted Types have nothing to object to. */

const SVG = "http://www.w3.org/2000/svg";

const ICONS = {
  chat: "M4 5.5A2.5 2.5 0 0 1 6.5 3h11A2.5 2.5 0 0 1 20 5.5v8a2.5 2.5 0 0 1-2.5 2.5H11l-4.6 4.1A.85.85 0 0 1 5 19.5V16A2.5 2.5 0 0 1 4 13.5z",
  close: "m6 6 12 12M18 6 6 18",
  wider: "M8 7l-5 5 5 5M16 7l5 5-5 5M3 12h18",
  full: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5",
  send: "M12 19V5m-6 6 6-6 6 6",
  stop: "M7.5 7.5h9v9h-9z",
  past: "M4 6h16M4 12h16M4 18h10",
  rename: "M4 20h4L19 9l-4-4L4 16z",
  remove: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  again: "M20 12a8 8 0 1 1-2.6-5.9M20 4v4h-4",
  takeBack: "M9 14 4 9l5-5M4 9h10a6 6 0 0 1 0 12h-3",
  up: "M7 11v9H4v-9zM7 11l4-8a2 2 0 0 1 2 2v4h6a1.5 1.5 0 0 1 1.5 1.8l-1.4 7A1.5 1.5 0 0 1 17.6 20H7",
  down: "M7 13V4H4v9zM7 13l4 8a2 2 0 0 0 2-2v-4h6a1.5 1.5 0 0 0 1.5-1.8l-1.4-7A1.5 1.5 0 0 0 17.6 4H7",
  done: "m5 12 5 5L19 7",
  restart: "M4 12a8 8 0 1 0 2.6-5.9M4 4v4h4",
} as const;

export type IconName = keyof typeof ICONS;

export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  properties: Partial<HTMLElementTagNameMap[K]> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

export function icon(name: IconName): SVGElement {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/** A button that is an icon; `label` is what it does, in words. */
export function iconButton(name: IconName, label: string, onClick: () => void): HTMLButtonElement {
  const node = element("button", { type: "button", className: "icon", title: label, ariaLabel: label }, icon(name));
  node.addEventListener("click", onClick);
  return node;
}

export function textButton(label: string, onClick: (button: HTMLButtonElement) => void): HTMLButtonElement {
  const node = element("button", { type: "button", textContent: label });
  node.addEventListener("click", () => onClick(node));
  return node;
}
