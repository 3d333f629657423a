/** The message for a visitor when the gateway refuses or cannot be reached: one sentence, and whether to try again. */

import { AskError } from "./client";
import type { ChatContext } from "./context";
import { element } from "./dom";
import type { Say, Word } from "./words";

const REASONS: Record<string, Word> = {
  "network": "network",
  "too-many-requests": "busy",
  "daily-budget": "budget",
  "chat-off": "off",
  "question-too-long": "tooLong",
  "origin-not-allowed": "refused",
  "unknown-site": "refused",
  "no-gateway": "refused",
  "forbidden": "refused",
};

export interface Trouble {
  code: string;
  message: string;
  wait: number; // seconds until asking again can help; 0: not known
  again: boolean; // whether asking again can help at all
}

/** `away`: the text if no server was reached. */
export function troubleOf(error: unknown, say: Say, away: Word = "unavailable"): Trouble {
  const { code, status, wait, detail } = error instanceof AskError ? error : new AskError("network"); // fetch itself failed
  const word = REASONS[code] ?? (status >= 502 || code === "unreachable" ? away : "failed");
  // Only this message is written for visitors, perhaps in the site's own words; other refusals are for programs.
  const message = (code === "chat-off" && detail) || say(word);
  return { code, message, wait: status === 429 ? wait : 0, again: word !== "refused" };
}

/** The message for a failed action other than an answer; screen readers read it too. */
export function trouble({ explain, announce }: ChatContext, error: unknown): HTMLElement {
  const { message } = explain(error, "failed");
  announce(message);
  return element("p", { className: "trouble", textContent: message });
}
