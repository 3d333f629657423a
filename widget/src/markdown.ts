/**
 * Answers are Markdown from a model or from pages: neither is trusted. The subset that answers use becomes DOM nodes,
 * one by one; everything else stays text. No HTML is ever parsed.
 *
 * Citations come as positions in the Markdown source, so every piece of text knows where in the source it began. The
 * time is linear in the length of the source: quotations and lists are read to a bounded depth, lines as in inline.ts.
 */

import { direct } from "./direction";
import { element } from "./dom";
import { inline, type Piece } from "./inline";

const SAFE_SCHEMES = new Set(["http:", "https:", "mailto:", "tel:"]);

const DEFINITION = /^[ \t]{0,3}:[ \t]+(?=\S)/; // below its term
const INDENTED = /^ {4}/; // what goes on with the definition above
const MOST_CELLS = 200; // of a row; more are no table that anybody reads
const DEEPEST = 8; // quotations in each other; what is deeper is text, as on the server
const ITEM = /^(\s*)([-*+]|\d{1,3}[.)])\s+/; // its indent, its mark
const RULE = /^\s{0,3}(?:-{3,}|\*{3,})\s*$/;

/** An absolute URL that is safe to follow, or null. `base`: absolute address of the page that it stands on, if not this one. */
export function safeUrl(href: string, base = document.baseURI): string | null {
  try {
    const url = new URL(href, base);
    return SAFE_SCHEMES.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/** A node to set into the text, before position `at` (UTF-16 units of the source); null: doubt begins there, or ends. */
export interface Mark {
  at: number;
  node: Node | null;
}

interface Line {
  text: string;
  at: number;
}

/**
 * Markdown as nodes. `marks` come in ascending order. `page`: address of the page whose text it is, from which its links
 * start; null: it is an answer. `html`: line breaks and characters may be written as in HTML, since models do so.
 */
export function renderMarkdown(
  source: string,
  marks: readonly Mark[] = [],
  page: string | null = null,
  html = page === null,
): DocumentFragment {
  const lines: Line[] = [];
  let at = 0;
  for (const text of source.split("\n")) {
    lines.push({ text, at });
    at += text.length + 1;
  }
  const fragment = document.createDocumentFragment();
  const writer = new Writer(marks, safeUrl(page ?? "") ?? "", html); // where no page is, no link leads anywhere
  writer.blocks(fragment, lines);
  writer.flush(fragment.lastElementChild ?? fragment, Infinity);
  fragment.normalize();
  direct(fragment);
  return fragment;
}

class Writer {
  #next = 0;
  #doubted = false;

  constructor(
    private readonly marks: readonly Mark[],
    private readonly base: string,
    private readonly html: boolean,
  ) {}

  blocks(parent: ParentNode, lines: readonly Line[], depth = 0): void {
    for (let i = 0; i < lines.length; ) {
      const { text, at } = lines[i]!;
      const fence = text.match(/^\s*(`{3,}|~{3,})/);
      const heading = text.match(/^\s{0,3}#{1,6}\s+/);
      if (!text.trim()) {
        i += 1;
      } else if (fence) {
        let end = i + 1;
        while (end < lines.length && !lines[end]!.text.trim().startsWith(fence[1]!)) end += 1;
        const code = lines.slice(i + 1, end).map((line) => line.text).join("\n");
        parent.append(element("pre", { dir: "ltr" }, element("code", { textContent: code })));
        i = end + 1;
      } else if (heading) {
        // Bold, not a heading: an answer has no part in the page's outline.
        const [hashes] = heading;
        this.#line(added(parent, element("p", { className: "heading" })), text.slice(hashes.length), at + hashes.length);
        i += 1;
      } else if (depth < DEEPEST && /^\s{0,3}>/.test(text)) {
        i = this.#run(lines, i, /^\s{0,3}>\s?/, (inner) =>
          this.blocks(added(parent, element("blockquote")), inner, depth + 1),
        );
      } else if (RULE.test(text)) {
        parent.append(element("hr"));
        i += 1;
      } else if (depth < DEEPEST && ITEM.test(text)) {
        i = this.#list(parent, lines, i, depth);
      } else if (text.trim().length > 1 && text.trimStart().startsWith("|") && text.trimEnd().endsWith("|")) {
        i = this.#run(lines, i, /^\s*(?=\|)/, (rows) => this.#table(parent, rows));
      } else if (this.#terms(lines, i)) {
        i = this.#definitions(parent, lines, i, depth);
      } else if (DEFINITION.test(text)) {
        // Its term stands in the passage before this one.
        const [mark] = text.match(DEFINITION)!;
        this.#line(added(parent, element("p")), text.slice(mark.length), at + mark.length);
        i += 1;
      } else {
        i = this.#paragraph(added(parent, element("p")), lines, i);
      }
    }
  }

  /** The line `i` and those that go on with it; returns the line after them. */
  #paragraph(parent: ParentNode, lines: readonly Line[], i: number): number {
    for (const first = i; i === first || (i < lines.length && continues(lines[i]!.text)); ) {
      if (i > first) parent.append(element("br"));
      const { text: begun, at } = lines[i]!;
      let text = begun;
      // Emphasis may go on in the next line, unless a quotation's mark or an indent stands between them.
      for (i += 1; lines[i]?.at === at + text.length + 1 && continues(lines[i]!.text); i += 1) text += `\n${lines[i]!.text}`;
      this.#line(parent, text, at);
    }
    return i;
  }

  /** Marks that belong before position `upTo`. */
  flush(parent: ParentNode, upTo: number): void {
    for (let mark = this.marks[this.#next]; mark && mark.at <= upTo; mark = this.marks[this.#next]) {
      if (mark.node) parent.append(mark.node);
      else this.#doubted = !this.#doubted;
      this.#next += 1;
    }
  }

  /** Hands the lines from `i` on that have the prefix, without it, to `build`; returns the line after them. */
  #run(lines: readonly Line[], i: number, prefix: RegExp, build: (found: Line[]) => void): number {
    const found: Line[] = [];
    for (; i < lines.length; i += 1) {
      const { text, at } = lines[i]!;
      const match = text.match(prefix);
      if (!match) break;
      found.push({ text: text.slice(match[0].length), at: at + match[0].length });
    }
    build(found);
    return i;
  }

  /** The list that begins at line `i`, with what stands below its items; returns the line after it. */
  #list(parent: ParentNode, lines: readonly Line[], i: number, depth: number): number {
    const [, indent = "", bullet = ""] = lines[i]!.text.match(ITEM)!;
    const ordered = /\d/.test(bullet);
    const list = added(parent, ordered ? element("ol", { start: Number.parseInt(bullet, 10) }) : element("ul"));
    while (i < lines.length) {
      const { text, at } = lines[i]!;
      const [lead, space = "", mark = ""] = text.match(ITEM) ?? [];
      // Less far in it belongs to a list around this one; with other marks it begins another list.
      if (lead === undefined || space.length + 1 < indent.length || /\d/.test(mark) !== ordered) break;
      const inside = [{ text: text.slice(lead.length), at: at + lead.length }];
      for (i += 1; i < lines.length; ) {
        let next = i; // behind blank lines
        while (next < lines.length && !lines[next]!.text.trim()) next += 1;
        const line = lines[next];
        const white = line ? line.text.length - line.text.trimStart().length : 0;
        if (!line || white <= indent.length + 1) {
          if (line && ITEM.test(line.text) && !RULE.test(line.text)) i = next; // the next item, or that of another list
          break;
        }
        if (next > i) inside.push({ text: "", at: line.at });
        const cut = Math.min(white, lead.length);
        inside.push({ text: line.text.slice(cut), at: line.at + cut });
        i = next + 1;
      }
      const item = added(list, element("li"));
      this.blocks(item, inside.slice(this.#paragraph(item, inside, 0)), depth + 1);
    }
    return i;
  }

  /** How many lines from `i` on are the terms of a definition; none where no definition follows them. */
  #terms(lines: readonly Line[], i: number): number {
    let end = i;
    while (end < lines.length && continues(lines[end]!.text) && !DEFINITION.test(lines[end]!.text)) end += 1;
    return end < lines.length && DEFINITION.test(lines[end]!.text) ? end - i : 0;
  }

  /** The definition list that begins at line `i`; returns the line after it. */
  #definitions(parent: ParentNode, lines: readonly Line[], i: number, depth: number): number {
    const list = added(parent, element("dl"));
    for (let terms = this.#terms(lines, i); terms; terms = this.#terms(lines, i)) {
      for (const end = i + terms; i < end; i += 1) this.#line(added(list, element("dt")), lines[i]!.text.trim(), lines[i]!.at);
      while (i < lines.length && DEFINITION.test(lines[i]!.text)) {
        const mark = lines[i]!.text.match(DEFINITION)![0].length;
        const inside = [{ text: lines[i]!.text.slice(mark), at: lines[i]!.at + mark }];
        for (i += 1; i < lines.length && (INDENTED.test(lines[i]!.text) || !lines[i]!.text.trim()); i += 1) {
          const { text, at } = lines[i]!;
          inside.push(text.trim() ? { text: text.slice(4), at: at + 4 } : { text: "", at });
        }
        this.blocks(added(list, element("dd")), inside, depth + 1);
      }
    }
    return i;
  }

  #table(parent: ParentNode, rows: readonly Line[]): void {
    const table = element("table");
    // Wide tables scroll by themselves, also for the keyboard.
    const box = added(parent, element("div", { className: "table", tabIndex: 0 }, table));
    box.dataset.at = String(rows[0]!.at);
    const ruled = rows.length > 1 && /^[\s|:-]+$/.test(rows[1]!.text);
    const nameless = ruled && /^[\s|]+$/.test(rows[0]!.text); // a table whose columns have no names
    rows.forEach(({ text, at }, index) => {
      if ((nameless && index === 0) || (ruled && index === 1)) return;
      const row = table.insertRow();
      for (const cell of cells(text)) {
        const node = ruled && index === 0 ? element("th", { scope: "col" }) : element("td");
        this.#line(added(row, node), cell.text.trim(), at + cell.at + cell.text.length - cell.text.trimStart().length);
      }
      // What is cited as a row, or as a table, ends behind the last bar.
      this.flush(row.lastElementChild ?? row, at + text.length);
    });
  }

  #line(parent: ParentNode, text: string, at: number): void {
    this.#inline(parent, inline(text, at, this.html));
    this.flush(parent, at + text.length);
  }

  /** `linked`: within a link, where there is no other. */
  #inline(parent: ParentNode, pieces: readonly Piece[], linked = false): void {
    for (let i = 0; i < pieces.length; i += 1) {
      const piece = pieces[i]!;
      switch (piece.kind) {
        case "text": {
          let { text } = piece;
          // One node for what has turned out to be one text.
          for (let next = pieces[i + 1]; next?.kind === "text" && next.at === piece.at + text.length; next = pieces[i + 1]) {
            text += next.text;
            i += 1;
          }
          this.#text(parent, text, piece.at);
          break;
        }
        case "break":
          this.flush(parent, piece.at);
          parent.append(element("br"));
          break;
        case "code":
          parent.append(element("code", { dir: "ltr", textContent: piece.text }));
          break;
        case "link":
          this.#inline(linked ? parent : added(parent, link(piece.href, this.base, piece.bare)), piece.inside, true);
          break;
        default:
          this.#inline(added(parent, element(piece.kind)), piece.inside, linked);
      }
    }
  }

  #text(parent: ParentNode, text: string, at: number): void {
    let done = 0;
    for (let mark = this.marks[this.#next]; mark && mark.at < at + text.length; mark = this.marks[this.#next]) {
      const cut = Math.max(mark.at - at, 0);
      this.#words(parent, text.slice(done, cut));
      this.flush(parent, at + cut);
      done = cut;
    }
    this.#words(parent, text.slice(done));
  }

  #words(parent: ParentNode, text: string): void {
    if (!text) return;
    const nodes = lineBreaks(text);
    parent.append(...(this.#doubted ? [element("span", { className: "doubt" }, ...nodes)] : nodes));
  }
}

function added<T extends Node>(parent: ParentNode, node: T): T {
  parent.append(node);
  return node;
}

function lineBreaks(text: string): (Node | string)[] {
  return text.split("\n").flatMap((line, i) => (i ? [element("br"), line] : [line]));
}

function continues(text: string): boolean {
  return text.trim() !== "" && !/^\s{0,3}(?:#{1,6}\s|>|[-*+]\s|\d{1,3}[.)]\s|\||`{3}|~{3})/.test(text) && !RULE.test(text);
}

/** What is between the bars of a row; behind a backslash a bar is text, and so it is behind many cells. */
function cells(row: string): Line[] {
  const bars = [...row.matchAll(/\\.|\|/gs)].filter(({ 0: mark }) => mark === "|").map(({ index }) => index);
  bars.splice(MOST_CELLS, bars.length - MOST_CELLS - 1);
  return bars.slice(1).map((end, i) => ({ text: row.slice(bars[i]! + 1, end), at: bars[i]! + 1 }));
}

/** `bare`: an address is written from left to right, wherever it stands. */
function link(href: string, base: string, bare: boolean): HTMLElement {
  const safe = safeUrl(href, base);
  const dir = bare ? { dir: "ltr" } : {};
  return safe === null ? element("span", dir) : element("a", { href: safe, target: "_blank", rel: "noopener noreferrer", ...dir });
}
