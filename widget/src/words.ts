/** The chat's own texts by language. English is the fallback. */

import { ar } from "./words/ar";
import { de } from "./words/de";
import { en } from "./words/en";
import { es } from "./words/es";
import { fr } from "./words/fr";
import { he } from "./words/he";
import { hu } from "./words/hu";
import { it } from "./words/it";
import { pl } from "./words/pl";
import { ro } from "./words/ro";

/** The forms that a language has for numbers (CLDR), `other` always. */
export type Plural = { other: string } & { [form in Intl.LDMLPluralRule]?: string };
export type Word = Exclude<keyof typeof en, "reading">;
export type Words = Record<Word, string> & { reading: Plural };

const WORDS: Record<string, Words> = { ar, de, en, es, fr, he, hu, it, pl, ro };
const RIGHT_TO_LEFT = new Set(["ar", "he"]);

/** A function from a word's name and its values to what to say. */
export interface Say {
  (word: Word | "reading", values?: Record<string, string | number>): string;
  readonly lang: string; // that it speaks, which is English where the wanted one has no words here
  readonly dir: "ltr" | "rtl";
}

/** The first of these that is a language tag, as the gateway takes it: `DE` and `en_US` are what pages say, too. */
export function languageOf(...written: (string | null)[]): string {
  for (const tag of written) {
    try {
      const [known = ""] = Intl.getCanonicalLocales(tag?.trim().replace(/_/g, "-") ?? "");
      if (/^[a-z]{2,3}(-|$)/.test(known)) return known;
    } catch {
      // None.
    }
  }
  return "en";
}

export function wordsFor(wanted: string): Say {
  const [primary = ""] = wanted.toLowerCase().split(/[-_]/);
  const lang = primary in WORDS ? primary : "en";
  const words: Words = WORDS[lang] ?? en;
  const plural = new Intl.PluralRules(lang);
  const say = (word: Word | "reading", values: Record<string, string | number> = {}): string => {
    const found = words[word];
    const text = typeof found === "string" ? found : (found[plural.select(Number(values.count))] ?? found.other);
    return text.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? ""));
  };
  return Object.assign(say, { lang, dir: RIGHT_TO_LEFT.has(lang) ? ("rtl" as const) : ("ltr" as const) });
}
