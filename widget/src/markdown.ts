/**
 * Answers are Markdown from a model or from pages: neither is trusted. The subset that answers use becomes DOM nodes,
 * one by one; everything else stays text. No HTML is ever parsed.
 *
 * Citations come as positions in the Markdown source, so every piece of text knows where in the source it began.
 */

import { element } from "./dom";

const SAFE_SCHEMES = new Set(["http:", "https:", "mailto:", "tel:"]);

const INLINE = new RegExp(
  [
    String.raw`\\(?<escaped>[\\${"`"}*_{}[\]()#+\-.!|>~])`,
    String.raw`(?<tick>${"`"}+)(?<code>.+?)\k<tick>`,
    String.raw`!?\[(?<label>(?:\\.|[^\]\\])*)\]\((?:<(?<framed>[^<>]*)>|(?<href>[^()\s<]*(?:\([^()\s]*\)[^()\s]*)*))(?:\s+"[^"]*")?\)`,
    String.raw`<(?<auto>https?:\/\/[^\s<>]+)>`,
    String.raw`(?<bold>\*\*|__)(?=\S)(?<strong>.+?)(?<=\S)\k<bold>`,
    String.raw`(?<![\w*])(?<slant>[*_])(?=[^\s*_])(?<em>.+?)(?<=\S)\k<slant>(?!\w)`,
    String.raw`(?<url>https?:\/\/[^\s<>()]*[^\s<>().,;:!?'"])`,
  ].join("|"),
  "gsu",
);

const DEFINITION = /^[ \t]{0,3}:[ \t]+(?=\S)/; // below its term
const INDENTED = /^ {4}/; // what goes on with the definition above
const ITEM = /^(\s*)([-*+]|\d{1,3}[.)])\s+/; // its indent, its mark

/** An absolute URL that is safe to follow, or null. `base`: address of the page that it stands on, if not this one. */
export function safeUrl(href: string, base = ""): string | null {
  try {
    const url = new URL(href, new URL(base, document.baseURI));
    return SAFE_SCHEMES.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/** A node to set into the text, before position `at` (UTF-16 units of the source). */
export interface Mark {
  at: number;
  node: Node;
}

interface Line {
  text: string;
  at: number;
}

/** Markdown as nodes. `marks` come in ascending order; `base`: address of the page that its links are relative to. */
export function renderMarkdown(source: string, marks: readonly Mark[] = [], base = ""): DocumentFragment {
  const lines: Line[] = [];
  let at = 0;
  for (const text of source.split("\n")) {
    lines.push({ text, at });
    at += text.length + 1;
  }
  const fragment = document.createDocumentFragment();
  const writer = new Writer(marks, base);
  writer.blocks(fragment, lines);
  writer.flush(fragment.lastElementChild ?? fragment, Infinity);
  return fragment;
}

class Writer {
  #marks: readonly Mark[];
  #next = 0;

  constructor(
    marks: readonly Mark[],
    private readonly base: string,
  ) {
    this.#marks = marks;
  }

  blocks(parent: ParentNode, lines: readonly Line[]): void {
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
        parent.append(element("pre", {}, element("code", { textContent: code })));
        i = end + 1;
      } else if (heading) {
        // Bold, not a heading: an answer has no part in the page's outline.
        const [hashes] = heading;
        this.#line(added(parent, element("p", { className: "heading" })), text.slice(hashes.length), at + hashes.length);
        i += 1;
      } else if (/^\s{0,3}>/.test(text)) {
        i = this.#run(lines, i, /^\s{0,3}>\s?/, (inner) =>
          this.blocks(added(parent, element("blockquote")), inner),
        );
      } else if (ITEM.test(text)) {
        i = this.#list(parent, lines, i);
      } else if (/^\s*\|.*\|\s*$/.test(text)) {
        i = this.#run(lines, i, /^\s*(?=\|)/, (rows) => this.#table(parent, rows));
      } else if (this.#terms(lines, i)) {
        i = this.#definitions(parent, lines, i);
      } else if (DEFINITION.test(text)) {
        // Its term stands in the passage before this one.
        const [mark] = text.match(DEFINITION)!;
        this.#line(added(parent, element("p")), text.slice(mark.length), at + mark.length);
        i += 1;
      } else {
        const paragraph = added(parent, element("p"));
        for (let first = i; i === first || (i < lines.length && continues(lines[i]!.text)); ) {
          if (i > first) paragraph.append(element("br"));
          const { text: begun, at } = lines[i]!;
          let text = begun;
          // Emphasis may go on in the next line, unless a quotation's mark stands between them.
          for (i += 1; lines[i]?.at === at + text.length + 1 && continues(lines[i]!.text); i += 1) text += `\n${lines[i]!.text}`;
          this.#line(paragraph, text, at);
        }
      }
    }
  }

  /** Marks that belong before position `upTo`. */
  flush(parent: ParentNode, upTo: number): void {
    for (let mark = this.#marks[this.#next]; mark && mark.at <= upTo; mark = this.#marks[this.#next]) {
      parent.append(mark.node);
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

  /** The list that begins at line `i`, with the lists in it; returns the line after it. */
  #list(parent: ParentNode, lines: readonly Line[], i: number): number {
    const [, indent = "", bullet = ""] = lines[i]!.text.match(ITEM)!;
    const ordered = /\d/.test(bullet);
    const list = added(parent, ordered ? element("ol", { start: Number.parseInt(bullet, 10) }) : element("ul"));
    let item: HTMLElement | null = null;
    while (i < lines.length) {
      const { text, at } = lines[i]!;
      const [lead, space = "", mark = ""] = text.match(ITEM) ?? [];
      if (lead === undefined) break;
      if (item && space.length > indent.length + 1) {
        i = this.#list(item, lines, i); // a list in the item above
        continue;
      }
      // Less far in it belongs to a list around this one; with other marks it begins another list.
      if (space.length + 1 < indent.length || /\d/.test(mark) !== ordered) break;
      item = added(list, element("li"));
      this.#line(item, text.slice(lead.length), at + lead.length);
      i += 1;
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
  #definitions(parent: ParentNode, lines: readonly Line[], i: number): number {
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
        this.blocks(added(list, element("dd")), inside);
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
    rows.forEach(({ text, at }, index) => {
      if (ruled && index === 1) return;
      const row = table.insertRow();
      for (const cell of text.matchAll(/(?<=\|)(?:\\.|[^|\\])*(?=\|)/g)) {
        const lead = cell[0].length - cell[0].trimStart().length;
        const node = ruled && index === 0 ? element("th", { scope: "col" }) : element("td");
        this.#line(added(row, node), cell[0].trim(), at + cell.index + lead);
      }
      // What is cited as a row, or as a table, ends behind the last bar.
      this.flush(row.lastElementChild ?? row, at + text.length);
    });
  }

  #line(parent: ParentNode, text: string, at: number): void {
    this.#inline(parent, text, at);
    this.flush(parent, at + text.length);
  }

  #inline(parent: ParentNode, text: string, at: number): void {
    let last = 0;
    for (const match of text.matchAll(INLINE)) {
      const { escaped, code, label, framed, href, auto, strong, em, url } = match.groups!;
      const start = at + match.index;
      this.#text(parent, text.slice(last, match.index), at + last);
      if (escaped) this.#text(parent, escaped, start + 1);
      else if (code) parent.append(element("code", { textContent: code }));
      else if (strong) this.#inline(added(parent, element("strong")), strong, start + 2);
      else if (em) this.#inline(added(parent, element("em")), em, start + 1);
      else if (url || auto) parent.append(link((url || auto)!, this.base, url || auto));
      else if (match[0].startsWith("!")) this.#text(parent, label ?? "", start + 2);
      else this.#inline(added(parent, link(framed ?? href ?? "", this.base)), label ?? "", start + 1);
      last = match.index + match[0].length;
    }
    this.#text(parent, text.slice(last), at + last);
  }

  #text(parent: ParentNode, text: string, at: number): void {
    let done = 0;
    for (let mark = this.#marks[this.#next]; mark && mark.at < at + text.length; mark = this.#marks[this.#next]) {
      const cut = Math.max(mark.at - at, 0);
      parent.append(...lineBreaks(text.slice(done, cut)));
      this.flush(parent, at + cut);
      done = cut;
    }
    parent.append(...lineBreaks(text.slice(done)));
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
  return text.trim() !== "" && !/^\s{0,3}(?:#{1,6}\s|>|[-*+]\s|\d{1,3}[.)]\s|\||`{3}|~{3})/.test(text);
}

function link(href: string, base: string, text = ""): HTMLElement {
  const safe = safeUrl(href, base);
  if (safe === null) return element("span", {}, text);
  return element("a", { href: safe, target: "_blank", rel: "noopener noreferrer" }, text);
}
