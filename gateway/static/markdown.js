/**
 * Answers are Markdown from a model or from pages: neither is trusted. The subset that answers use becomes DOM nodes,
 * one by one; everything else stays text. No HTML is ever parsed.
 *
 * Citations come as positions in the Markdown source, so every piece of text knows where in the source it began.
 */

const SAFE_SCHEMES = new Set(["http:", "https:", "mailto:", "tel:"]);

const INLINE = new RegExp(
  [
    String.raw`\\(?<escaped>[\\${"`"}*_{}[\]()#+\-.!|>~])`,
    String.raw`(?<tick>${"`"}+)(?<code>.+?)\k<tick>`,
    String.raw`!?\[(?<label>[^\]]*)\]\((?<href>[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?:\s+"[^"]*")?\)`,
    String.raw`(?<bold>\*\*|__)(?=\S)(?<strong>.+?)(?<=\S)\k<bold>`,
    String.raw`(?<![\w*])(?<slant>[*_])(?=[^\s*_])(?<em>.+?)(?<=\S)\k<slant>(?!\w)`,
    String.raw`(?<url>https?:\/\/[^\s<>()]*[^\s<>().,;:!?'"])`,
  ].join("|"),
  "gsu",
);

/** An absolute URL that is safe to follow, or null. */
export function safeUrl(href) {
  try {
    const url = new URL(href, document.baseURI);
    return SAFE_SCHEMES.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/**
 * Markdown as nodes.
 * @param {string} source
 * @param {{at: number, node: Node}[]} marks nodes to set into the text, by position (UTF-16), ascending
 * @returns {DocumentFragment}
 */
export function renderMarkdown(source, marks = []) {
  const lines = [];
  let at = 0;
  for (const text of source.split("\n")) {
    lines.push({ text, at });
    at += text.length + 1;
  }
  const fragment = document.createDocumentFragment();
  const writer = new Writer(marks);
  writer.blocks(fragment, lines);
  writer.flush(fragment.lastElementChild ?? fragment, Infinity);
  return fragment;
}

export function element(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

class Writer {
  #marks;
  #next = 0;

  constructor(marks) {
    this.#marks = marks;
  }

  blocks(parent, lines) {
    for (let i = 0; i < lines.length; ) {
      const { text, at } = lines[i];
      const fence = text.match(/^\s*(`{3,}|~{3,})/);
      const heading = text.match(/^\s{0,3}#{1,6}\s+/);
      if (!text.trim()) {
        i += 1;
      } else if (fence) {
        let end = i + 1;
        while (end < lines.length && !lines[end].text.trim().startsWith(fence[1])) end += 1;
        const code = lines.slice(i + 1, end).map((line) => line.text).join("\n");
        parent.append(element("pre", {}, element("code", { textContent: code })));
        i = end + 1;
      } else if (heading) {
        // Bold, not a heading: an answer has no part in the page's outline.
        this.#line(parent.appendChild(element("p", { className: "heading" })), text.slice(heading[0].length), at + heading[0].length);
        i += 1;
      } else if (/^\s{0,3}>/.test(text)) {
        i = this.#run(lines, i, /^\s{0,3}>\s?/, (inner) =>
          this.blocks(parent.appendChild(element("blockquote")), inner),
        );
      } else if (/^\s*[-*+]\s+/.test(text)) {
        i = this.#run(lines, i, /^\s*[-*+]\s+/, (items) => this.#list(parent, "ul", items));
      } else if (/^\s*\d{1,9}[.)]\s+/.test(text)) {
        const start = Number.parseInt(text, 10);
        i = this.#run(lines, i, /^\s*\d{1,9}[.)]\s+/, (items) => this.#list(parent, "ol", items).start = start);
      } else if (/^\s*\|.*\|\s*$/.test(text)) {
        i = this.#run(lines, i, /^\s*(?=\|)/, (rows) => this.#table(parent, rows));
      } else {
        const paragraph = parent.appendChild(element("p"));
        this.#line(paragraph, text, at);
        for (i += 1; i < lines.length && continues(lines[i].text); i += 1) {
          paragraph.append(element("br"));
          this.#line(paragraph, lines[i].text, lines[i].at);
        }
      }
    }
  }

  /** Marks that belong before position `upTo`. */
  flush(parent, upTo) {
    while (this.#next < this.#marks.length && this.#marks[this.#next].at <= upTo) {
      parent.append(this.#marks[this.#next].node);
      this.#next += 1;
    }
  }

  /** Hands the lines from `i` on that have the prefix, without it, to `build`; returns the line after them. */
  #run(lines, i, prefix, build) {
    const found = [];
    for (; i < lines.length; i += 1) {
      const match = lines[i].text.match(prefix);
      if (!match) break;
      found.push({ text: lines[i].text.slice(match[0].length), at: lines[i].at + match[0].length });
    }
    build(found);
    return i;
  }

  #list(parent, kind, items) {
    const list = parent.appendChild(element(kind));
    for (const { text, at } of items) this.#line(list.appendChild(element("li")), text, at);
    return list;
  }

  #table(parent, rows) {
    const table = element("table");
    // Wide tables scroll by themselves, also for the keyboard.
    parent.append(element("div", { className: "table", tabIndex: 0 }, table));
    const ruled = rows.length > 1 && /^[\s|:-]+$/.test(rows[1].text);
    rows.forEach(({ text, at }, index) => {
      if (ruled && index === 1) return;
      const row = table.insertRow();
      for (const cell of text.matchAll(/(?<=\|)(?:\\.|[^|\\])*(?=\|)/g)) {
        const lead = cell[0].length - cell[0].trimStart().length;
        const node = element(ruled && index === 0 ? "th" : "td");
        this.#line(row.appendChild(node), cell[0].trim(), at + cell.index + lead);
      }
    });
  }

  #line(parent, text, at) {
    this.#inline(parent, text, at);
    this.flush(parent, at + text.length);
  }

  #inline(parent, text, at) {
    let last = 0;
    for (const match of text.matchAll(INLINE)) {
      const { escaped, code, label, href, strong, em, url } = match.groups;
      const start = at + match.index;
      this.#text(parent, text.slice(last, match.index), at + last);
      if (escaped) this.#text(parent, escaped, start + 1);
      else if (code) parent.append(element("code", { textContent: code }));
      else if (strong) this.#inline(parent.appendChild(element("strong")), strong, start + 2);
      else if (em) this.#inline(parent.appendChild(element("em")), em, start + 1);
      else if (url) parent.append(link(url, url));
      else if (match[0].startsWith("!")) this.#text(parent, label, start + 2);
      else this.#inline(parent.appendChild(link(href)), label, start + 1);
      last = match.index + match[0].length;
    }
    this.#text(parent, text.slice(last), at + last);
  }

  #text(parent, text, at) {
    let done = 0;
    while (this.#next < this.#marks.length && this.#marks[this.#next].at < at + text.length) {
      const cut = Math.max(this.#marks[this.#next].at - at, 0);
      parent.append(text.slice(done, cut));
      this.flush(parent, at + cut);
      done = cut;
    }
    parent.append(text.slice(done));
  }
}

function continues(text) {
  return text.trim() && !/^\s{0,3}(?:#{1,6}\s|>|[-*+]\s|\d{1,9}[.)]\s|\||`{3}|~{3})/.test(text);
}

function link(href, text = "") {
  const safe = safeUrl(href);
  if (safe === null) return element("span", {}, text);
  return element("a", { href: safe, target: "_blank", rel: "noopener noreferrer" }, text);
}
