/** The search field's texts by language, those of the gateway's page of results. English is the fallback. */

import words from "../../gateway/site/search_words.json";

export type SearchWord = keyof typeof words.en;

export interface SaySearch {
  (word: SearchWord, values?: Record<string, string | number>): string;
  readonly lang: string;
  readonly dir: "ltr" | "rtl";
}

const WORDS: Record<string, Record<SearchWord, string>> = words;

export function searchWordsFor(wanted: string): SaySearch {
  const [primary = ""] = wanted.toLowerCase().split("-");
  const lang = primary in WORDS ? primary : "en";
  const said = WORDS[lang] ?? words.en;
  const dir = directionOfLanguage(lang);
  // Isolated (Unicode's bidirectional algorithm), or a query in Latin letters would move the quotation marks.
  const isolated = (value: string | number | undefined) => (dir === "rtl" ? `\u2068${value}\u2069` : String(value ?? ""));
  const say = (word: SearchWord, values: Record<string, string | number> = {}): string =>
    (said[word] ?? "").replace(/\{(\w+)\}/g, (_, name: string) => isolated(values[name]));
  return Object.assign(say, { lang, dir });
}

/** In which direction a language is written, as far as it has pages here (gateway/site/pages.py has the same). */
export function directionOfLanguage(lang: string): "ltr" | "rtl" {
  return /^(?:ar|fa|he|ur|yi)(?:-|$)/.test(lang) ? "rtl" : "ltr";
}
