/** An answer to paste elsewhere: the text as it is shown, without Markdown, with the numbers of its sources. */

const BLOCKS = new Set(["P", "UL", "OL", "BLOCKQUOTE", "PRE", "TABLE", "DIV", "DL"]);

/** Text of rendered Markdown: items with their bullets, rows with tabs between their cells, links with addresses. */
export function writtenOut(node: Node): string {
  return tidy(written(node, false));
}

/** `inItem`: of a list, where blocks stand below each other without a blank line. */
function written(node: Node, inItem: boolean): string {
  if (!(node instanceof HTMLElement)) return node.textContent ?? "";
  if (node.tagName === "DETAILS") return ""; // a whole table is not what was answered
  if (node.tagName === "SUP") return ` [${node.textContent}]`;
  if (node.tagName === "PRE") return `\n\n${node.textContent}\n\n`;
  const within = inItem || node instanceof HTMLLIElement;
  const inside = [...node.childNodes].map((child) => written(child, within)).join("");
  if (node instanceof HTMLAnchorElement && node.href !== inside) return `${inside} (${node.href})`;
  if (node instanceof HTMLLIElement) return `\n${bullet(node)} ${tidy(inside).replaceAll("\n", "\n  ")}`;
  if (node instanceof HTMLTableRowElement) return `\n${[...node.cells].map((cell) => tidy(written(cell, true))).join("\t")}`;
  if (node.tagName === "DT") return `\n${tidy(inside)}`;
  if (node.tagName === "DD") return `\n  ${tidy(inside).replaceAll("\n", "\n  ")}`;
  if (node.tagName === "BR") return "\n";
  if (!BLOCKS.has(node.tagName)) return inside;
  return inItem ? `\n${tidy(inside)}` : `\n\n${tidy(inside)}\n\n`;
}

function bullet(item: HTMLLIElement): string {
  const list = item.parentElement;
  if (!(list instanceof HTMLOListElement)) return "-";
  return `${list.start + [...list.children].indexOf(item)}.`;
}

function tidy(text: string): string {
  return text.replace(/\n{3,}/g, "\n\n").trim();
}
