/**
 * Marks quotes in a passage as it is shown. Quote and passage are compared by their letters and digits alone: between
 * those a table has cells, a list has items, and the quote may have Markdown that the passage no longer shows.
 */

import { element } from "./dom";

const COUNTS = /[\p{L}\p{N}\p{M}\p{Sc}]/u;
const CLOSING = /^[\p{Po}\p{Pe}\p{Pf}]+/u; // what ends a sentence belongs to it
const ITEM = /^[ \t]*\d{1,3}[.)][ \t]+/gm; // a list's number is not among the list's text

/** Puts each quote that stands in `root` into mark elements: one for each piece of text that it runs over. */
export function markQuotes(root: Element, quotes: readonly string[]): void {
  for (const quote of quotes) {
    // As it is first: a sentence may begin with a number.
    if (!mark(root, quote)) mark(root, quote.replace(ITEM, ""));
  }
}

function mark(root: Element, quote: string): boolean {
  const wanted = [...quote].filter((character) => COUNTS.test(character)).join("");
  if (!wanted) return false;
  const texts: Text[] = [];
  const places: { text: number; at: number; length: number }[] = []; // of each UTF-16 unit that is compared
  let shown = "";
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node as Text;
    let at = 0;
    for (const character of text.data) {
      if (COUNTS.test(character)) {
        shown += character;
        for (const _ of character.split("")) places.push({ text: texts.length, at, length: character.length });
      }
      at += character.length;
    }
    texts.push(text);
  }
  const begin = shown.indexOf(wanted);
  const first = places[begin];
  const last = places[begin + wanted.length - 1];
  if (begin < 0 || !first || !last) return false;
  for (let i = last.text; i >= first.text; i -= 1) {
    const text = texts[i]!;
    const from = i === first.text ? first.at : 0;
    let to = text.length;
    if (i === last.text) {
      to = last.at + last.length;
      to += text.data.slice(to).match(CLOSING)?.[0].length ?? 0;
    }
    if (text.data.slice(from, to).trim() && !text.parentElement?.closest("mark")) surround(text, from, to);
  }
  return true;
}

function surround(text: Text, from: number, to: number): void {
  const marked = text.splitText(from);
  marked.splitText(to - from);
  const box = element("mark");
  marked.replaceWith(box);
  box.append(marked);
}
