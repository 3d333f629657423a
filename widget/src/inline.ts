/**
 * What stands in a line of Markdown: emphasis, code, links, addresses.
 *
 * Strangers write it, so the time it takes is linear in its length: it is read once from left to right, an address is
 * looked through to its end once or twice, and of what is still open only the last few marks are looked back at.
 */

/** `at`: where it begins in the source, in UTF-16 units. */
export type Piece =
  | { kind: "text"; text: string; at: number }
  | { kind: "break"; at: number }
  | { kind: "code"; text: string }
  | { kind: "em" | "strong" | "del"; inside: Piece[] }
  | { kind: "link"; href: string; inside: Piece[]; bare: boolean }; // `bare`: its text is its address

const MOST_OPEN = 16; // marks that nothing has closed yet; the first of more are text
const MOST_BRACKETS = 3; // in each other, of an address
const LONGEST_RUN = 3; // of asterisks or underscores: more of them are a line to write on
const ESCAPABLE = "\\`*_{}[]()#+-.:!|>~<&\n"; // at its end a line breaks
// Nobody types them into an address; what is behind a full stop of Chinese or Japanese goes on with the sentence.
const ENDS_ADDRESS = /^(?:[\s<>"`“”«»‹›。，、；：！？．｡､（）「」『』【】《》〈〉〔〕［］｛｝…]|\*\*|~~)/;
const AFTER_ADDRESS = ".,;:!?'’*_~"; // at its end they belong to the sentence
const LATIN_1 = // in order, from U+00A0
  "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para " +
  "middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute " +
  "Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml " +
  "Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth " +
  "ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml";
const ENTITIES = new Map<string, string>([
  ...LATIN_1.split(" ").map((name, i) => [name, String.fromCharCode(0xa0 + i)] as const),
  ...Object.entries({ amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", euro: "€", trade: "™", bull: "•", hellip: "…" }),
  ...Object.entries({ larr: "←", rarr: "→", le: "≤", ge: "≥", ne: "≠", minus: "−", thinsp: "\u2009" }),
  ...Object.entries({ ndash: "–", mdash: "—", lsquo: "‘", rsquo: "’", sbquo: "‚", ldquo: "“", rdquo: "”", bdquo: "„" }),
]);

/** The pieces of `text`, which begins at `at`. `html`: line breaks and entities are read, as models write them. */
export function inline(text: string, at = 0, html = false): Piece[] {
  return new Reader(text, at, html).pieces;
}

/** The words alone. */
export function words(pieces: readonly Piece[]): string {
  return pieces.map((piece) => ("inside" in piece ? words(piece.inside) : "text" in piece ? piece.text : " ")).join("");
}

/** Something that may turn out to have begun an emphasis or a link; until then, and else, it is text. */
interface Open {
  mark: string;
  length: number;
  piece: number; // its place among the pieces
}

class Reader {
  readonly pieces: Piece[] = [];
  #open: Open[] = [];
  #ticks: Map<number, number[]> | null = null; // where runs of so many backticks begin, the first one last

  constructor(
    private readonly source: string,
    private readonly at: number,
    private readonly html: boolean,
  ) {
    const special = /[\\`\]<&]|!?\[|\*+|_+|~+|https?:\/\//g;
    let done = 0;
    for (let found = special.exec(source); found; found = special.exec(source)) {
      this.#text(done, found.index);
      done = special.lastIndex = this.#special(found[0], found.index);
    }
    this.#text(done, source.length);
  }

  /** Reads on from `at`, where `mark` stands; returns where that ends. */
  #special(mark: string, at: number): number {
    const end = at + mark.length;
    switch (mark[0]) {
      case "\\":
        return ESCAPABLE.includes(this.source[end] ?? " ") ? this.#text(end, end + 1) : this.#text(at, end);
      case "`":
        return this.#code(at);
      case "*":
      case "_":
      case "~":
        return this.#emphasis(mark, at, end);
      case "!":
      case "[":
        return this.#opens("[", mark.length, at, end);
      case "]":
        return this.#link(at, end);
      case "<":
        return this.#tag(at, end);
      case "&":
        return this.#entity(at, end);
      default:
        return this.#address(at, end);
    }
  }

  #text(from: number, to: number): number {
    const text = this.source.slice(from, to);
    if (text) this.pieces.push({ kind: "text", text, at: this.at + from });
    return to;
  }

  #opens(mark: string, length: number, at: number, end: number): number {
    if (this.#open.length === MOST_OPEN) this.#open.shift();
    this.#open.push({ mark, length, piece: this.pieces.length });
    return this.#text(at, end);
  }

  #code(at: number): number {
    if (!this.#ticks) {
      this.#ticks = new Map();
      for (const { 0: run, index } of [...this.source.matchAll(/`+/g)].reverse()) {
        const same = this.#ticks.get(run.length);
        if (same) same.push(index);
        else this.#ticks.set(run.length, [index]);
      }
    }
    let end = at;
    while (this.source[end] === "`") end += 1;
    const same = this.#ticks.get(end - at) ?? [];
    while ((same.at(-1) ?? end) < end) same.pop();
    const close = same.at(-1);
    if (close === undefined) return this.#text(at, end);
    const code = this.source.slice(end, close);
    // A space at each end keeps backticks apart that are part of the code.
    const text = code.startsWith(" ") && code.endsWith(" ") && code.trim() ? code.slice(1, -1) : code;
    this.pieces.push({ kind: "code", text });
    return close + end - at;
  }

  #emphasis(run: string, at: number, end: number): number {
    const mark = run[0]!;
    if (mark === "~" ? run.length !== 2 : run.length > LONGEST_RUN) return this.#text(at, end);
    const { opens, closes } = sides(run, this.source.slice(Math.max(at - 2, 0), at), this.source.slice(end, end + 3));
    let left = run.length;
    while (closes && left) {
      const place = this.#open.findLastIndex((open) => open.mark === mark && pair(open.length, left));
      const open = this.#open[place];
      if (!open) break;
      const used = Math.min(open.length, left, 2);
      open.length -= used;
      left -= used;
      this.#open.length = place + Number(open.length > 0); // what is open inside stays text
      const inside = this.pieces.splice(open.piece + 1);
      const begun = this.pieces[open.piece] as { text: string };
      begun.text = begun.text.slice(used);
      this.pieces.push({ kind: mark === "~" ? "del" : used === 2 ? "strong" : "em", inside });
    }
    if (!left) return end;
    return opens ? this.#opens(mark, left, end - left, end) : this.#text(end - left, end);
  }

  #link(at: number, end: number): number {
    const place = this.#open.findLastIndex(({ mark }) => mark === "[");
    const open = this.#open[place];
    if (!open) return this.#text(at, end);
    const target = /\((?:<([^<>\n]*)>|((?:[^()\s<]|\([^()\s]*\))*))(?:\s+"[^"]*")?\)/y;
    target.lastIndex = end;
    const found = target.exec(this.source);
    if (!found) {
      this.#open.splice(place, 1);
      return this.#text(at, end);
    }
    this.#open.length = place;
    const [, ...inside] = this.pieces.splice(open.piece);
    // Of a picture its description.
    if (open.length > 1) this.pieces.push(...inside);
    else this.pieces.push({ kind: "link", href: this.#read(found[1] ?? found[2] ?? ""), inside, bare: false });
    return target.lastIndex;
  }

  #tag(at: number, end: number): number {
    const tag = /<(?:(https?:\/\/[^\s<>]+)|br\s{0,9}\/?)>/iy;
    tag.lastIndex = at;
    const found = tag.exec(this.source);
    if (!found || !(found[1] || this.html)) return this.#text(at, end);
    if (found[1]) this.#bare(at + 1, tag.lastIndex - 1);
    else this.pieces.push({ kind: "break", at: this.at + at });
    return tag.lastIndex;
  }

  #entity(at: number, end: number): number {
    const entity = this.html ? /&#?\w{1,8};/y : null;
    if (entity) entity.lastIndex = at;
    const [written] = entity?.exec(this.source) ?? [""];
    const text = this.#read(written);
    if (text === written) return this.#text(at, end);
    this.pieces.push({ kind: "text", text, at: this.at + at });
    return at + written.length;
  }

  #address(at: number, begin: number): number {
    const end = addressEnd(this.source, begin);
    if (end === begin) return this.#text(at, begin);
    this.#bare(at, end);
    return end;
  }

  #bare(at: number, end: number): void {
    const href = this.#read(this.source.slice(at, end));
    this.pieces.push({ kind: "link", href, inside: [{ kind: "text", text: href, at: this.at + at }], bare: true });
  }

  /** With its entities as what they stand for. */
  #read(text: string): string {
    if (!this.html) return text;
    return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w{2,8}));/gi, (all, decimal, hex, name) => {
      if (name) return ENTITIES.get(name) ?? all;
      const code = decimal ? Number(decimal) : Number.parseInt(hex, 16);
      return code && code <= 0x10ffff ? String.fromCodePoint(code) : "\ufffd";
    });
  }
}

/** Whether so many marks can begin and end the same emphasis: neither half of a strong one, nor more than there is. */
function pair(open: number, close: number): boolean {
  return Math.min(open, close) >= 2 || (open !== 2 && close !== 2);
}

/** Whether a run of marks can begin an emphasis, and whether it can end one: within a word it does neither. */
function sides(run: string, before: string, after: string): { opens: boolean; closes: boolean } {
  const opens = /^\S/.test(after);
  const closes = /\S$/.test(before);
  // Names go on behind a full stop or a bracket: __init__.py, Foo_(bar).
  if (run[0] === "_") {
    return {
      opens: opens && !/[\p{L}\p{N}]$/u.test(before),
      closes: closes && !/^[.(/:@-]?[\p{L}\p{N}]/u.test(after),
    };
  }
  if (run !== "*") return { opens, closes };
  // 5*3 and A*A*A; but scripts without capital letters have no spaces around words, or join to them what is no word.
  return {
    opens: opens && !/[\p{Lu}\p{Ll}\p{N}]$/u.test(before),
    closes: closes && !/^[\p{Lu}\p{Ll}\p{N}]/u.test(after),
  };
}

/** Where the address ends whose host begins at `from`: with brackets that it closes itself, without what follows it. */
function addressEnd(text: string, from: number): number {
  const brackets: number[] = [];
  let end = from;
  for (; end < text.length && brackets.length <= MOST_BRACKETS && !ENDS_ADDRESS.test(text.slice(end, end + 2)); end += 1) {
    const character = text[end]!;
    if ("([".includes(character)) brackets.push(end);
    else if (")]".includes(character)) {
      const open = text[brackets.at(-1) ?? -1] ?? "";
      if (open + character !== "()" && open + character !== "[]") break;
      brackets.pop();
    }
  }
  end = brackets[0] ?? end;
  while (end > from && AFTER_ADDRESS.includes(text[end - 1]!)) end -= 1;
  return end;
}
