/**
 * Finds quotes in a passage as it is shown. Quote and passage are compared by their letters and digits alone: between
 * those a table has cells, a list has items, and the quote may have Markdown that the passage no longer shows.
 */

import { element } from "./dom";

const COUNTS = /[\p{L}\p{N}\p{M}\p{Sc}]+/gu;
const CLOSING = /^[\p{Po}\p{Pe}\p{Pf}]+/u; // what ends a sentence belongs to it
const ITEM = /^[ \t]*\d{1,3}[.)][ \t]+/gm; // a list's number is not among the list's text
const BLOCKS = "p, li, dt, dd, th, td, pre"; // a browser looks for no text across their borders
const BREAKS = new Set(["BR", "DEL"]); // a browser finds no text across a line's end, nor where a quote leaves some out

/** The first and the last of the letters and digits that it has. */
interface Span {
  first: number;
  last: number;
}

/** What is shown below `root`, as it was when this was made. */
export class Passage {
  #texts: Text[] = [];
  #letters = ""; // all that count
  #text: number[] = []; // of each UTF-16 unit of them, the text it stands in
  #at: number[] = []; // and where there

  constructor(root: Node) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const text = node as Text;
      if (text.parentElement?.closest("del")) continue; // no quote has what was deleted
      for (const { 0: run, index } of text.data.matchAll(COUNTS)) {
        this.#letters += run;
        for (let i = 0; i < run.length; i += 1) {
          this.#text.push(this.#texts.length);
          this.#at.push(index + i);
        }
      }
      this.#texts.push(text);
    }
  }

  /** Puts the quotes into mark elements: one for each piece of text that they run over. Nothing is found afterwards. */
  mark(quotes: readonly string[]): void {
    const spans: Span[] = [];
    for (const span of quotes.flatMap((quote) => this.#find(quote) ?? []).sort((a, b) => a.first - b.first)) {
      const before = spans.at(-1);
      if (before && span.first <= before.last) before.last = Math.max(before.last, span.last);
      else spans.push(span);
    }
    // From the end on: what is cut off a text is behind what is still to be marked there.
    for (const span of spans.reverse()) {
      for (const { text, from, to } of this.#parts(span).reverse()) if (text.data.slice(from, to).trim()) surround(text, from, to);
    }
  }

  /** What the page shows of the quote, in each of the blocks and lines that it runs over; nothing where it does not stand. */
  pieces(quote: string): string[] {
    const span = this.#find(quote);
    const pieces: string[] = [];
    let before: Element | null = null;
    for (const { text, from, to } of span ? this.#parts(span) : []) {
      const block = text.parentElement?.closest(BLOCKS) ?? null;
      if (!pieces.length || block !== before || BREAKS.has(text.previousSibling?.nodeName ?? "")) pieces.push("");
      pieces[pieces.length - 1] += text.data.slice(from, to);
      before = block;
    }
    return pieces.map((piece) => piece.replace(/\s+/g, " ").trim()).filter((piece) => piece !== "");
  }

  #find(quote: string): Span | null {
    // As it is first: a sentence may begin with a number.
    return this.#place(quote) ?? this.#place(quote.replace(ITEM, ""));
  }

  #place(quote: string): Span | null {
    const wanted = quote.match(COUNTS)?.join("") ?? "";
    const first = wanted ? this.#letters.indexOf(wanted) : -1;
    return first < 0 ? null : { first, last: first + wanted.length - 1 };
  }

  #parts({ first, last }: Span): { text: Text; from: number; to: number }[] {
    const [begin, end] = [this.#text[first]!, this.#text[last]!];
    return this.#texts.slice(begin, end + 1).map((text, i) => {
      const from = i === 0 ? this.#at[first]! : 0;
      if (i < end - begin) return { text, from, to: text.length };
      const to = this.#at[last]! + 1;
      return { text, from, to: to + (text.data.slice(to).match(CLOSING)?.[0].length ?? 0) };
    });
  }
}

function surround(text: Text, from: number, to: number): void {
  const marked = text.splitText(from);
  marked.splitText(to - from);
  const box = element("mark");
  marked.replaceWith(box);
  box.append(marked);
}
