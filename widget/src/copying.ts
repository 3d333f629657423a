/** An answer as plain text: to copy, with the numbers of its sources; or for screen readers. */

const BLOCKS = new Set(["P", "UL", "OL", "BLOCKQUOTE", "PRE", "TABLE", "DIV", "DL"]);
const PAUSES = new Set(["P", "LI", "DT", "DD", "TD", "TH", "BR", "PRE"]); // elements after which screen readers pause

/** Text of rendered Markdown: items with their bullets, rows with tabs between their cells, links with addresses. */
export function writtenOut(node: Node): string {
  return tidy(written(node, false));
}

/** Text of rendered Markdown in one line, without the numbers of its sources. */
export function spoken(node: Node): string {
  if (!(node instanceof HTMLElement)) return node.textContent ?? "";
  if (["SUP", "DETAILS"].includes(node.tagName)) return "";
  const inside = [...node.childNodes].map(spoken).join("");
  return PAUSES.has(node.tagName) ? `${inside} ` : inside;
}

/** `inItem`: of a list, where blocks stand below each other without a blank line. `place`: in its list. */
function written(node: Node, inItem: boolean, place = 0): string {
  if (!(node instanceof HTMLElement)) return node.textContent ?? "";
  if (node.tagName === "DETAILS") return ""; // a folded whole table is no part of the answer
  if (node.tagName === "SUP") return ` [${node.textContent}]`;
  if (node.tagName === "PRE") return `\n\n${node.textContent}\n\n`;
  if (node instanceof HTMLTableRowElement) return `\n${[...node.cells].map((cell) => tidy(written(cell, true))).join("\t")}`;
  const within = inItem || node instanceof HTMLLIElement;
  const inside = [...node.childNodes].map((child, i) => written(child, within, i)).join("");
  if (node instanceof HTMLAnchorElement && node.href !== inside) return `${inside} (${node.href})`;
  if (node instanceof HTMLLIElement) return `\n${bullet(node, place)} ${tidy(inside).replaceAll("\n", "\n  ")}`;
  if (node.tagName === "DT") return `\n${tidy(inside)}`;
  if (node.tagName === "DD") return `\n  ${tidy(inside).replaceAll("\n", "\n  ")}`;
  if (node.tagName === "BR") return "\n";
  if (!BLOCKS.has(node.tagName)) return inside;
  return inItem ? `\n${tidy(inside)}` : `\n\n${tidy(inside)}\n\n`;
}

function bullet(item: HTMLLIElement, place: number): string {
  const list = item.parentElement;
  return list instanceof HTMLOListElement ? `${list.start + place}.` : "-";
}

function tidy(text: string): string {
  return text.replace(/\n{3,}/g, "\n\n").trim();
}
