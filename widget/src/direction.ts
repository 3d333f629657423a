/**
 * In which direction each block of an answer is laid out. The first letter alone, as `dir="auto"` goes by, is wrong for
 * an Arabic sentence that begins with the town's name in Latin letters: there the most letters decide. Nor is
 * `dir="auto"` used where many nodes are put in: a browser looks for the first letter again with each of them.
 */

const LETTER = /\p{L}/gu;
const RIGHT_TO_LEFT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/gu;
const ISOLATED = "code, a[dir], span[dir]"; // written from left to right wherever they stand

/** Gives each block its own direction; what has no letters keeps that of what it stands in. */
export function direct(root: ParentNode & Node): void {
  if (first(root, RIGHT_TO_LEFT) < 0) return; // then that of the whole is right for all
  // From the inside: what has a direction of its own says nothing about that of the block around it.
  for (const block of [...root.querySelectorAll<HTMLElement>("p, li, dt, dd, th, td")].reverse()) block.dir = directionOf(block, "[dir]");
  for (const box of root.querySelectorAll<HTMLElement>("blockquote, .table")) box.dir = directionOf(box);
}

/** Of the words below `root`, less those in elements that match `but`; empty where there are none. */
export function directionOf(root: Node, but = ISOLATED): "rtl" | "ltr" | "" {
  if (first(root, RIGHT_TO_LEFT) < 0) return first(root, LETTER) < 0 ? "" : "ltr";
  const accept = (node: Node) => (node instanceof Element && node.matches(but) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, accept);
  let words = "";
  for (let node = walker.nextNode(); node; node = walker.nextNode()) if (node instanceof Text) words += node.data;
  const letters = words.match(LETTER) ?? [];
  const fromRight = words.match(RIGHT_TO_LEFT) ?? [];
  if (!letters.length) return "";
  return fromRight.length * 2 > letters.length || letters[0] === fromRight[0] ? "rtl" : "ltr";
}

/** Where the first such letter stands; negative: nowhere. */
function first(root: Node, letter: RegExp): number {
  return (root.textContent ?? "").search(letter);
}
