/** What a visitor is told when the gateway refuses, or cannot be reached: one plain sentence, and whether to try again. */

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

/** `away`: what is said where no server does it. */
export function troubleOf(error: unknown, say: Say, away: Word = "unavailable"): Trouble {
  const { code, status, wait, detail } = error instanceof AskError ? error : new AskError("network"); // fetch itself failed
  const word = REASONS[code] ?? (status >= 502 || code === "unreachable" ? away : "failed");
  // The site may say it in words of its own; all other refusals are written for programs.
  const message = (code === "chat-off" && detail) || say(word);
  return { code, message, wait: status === 429 ? wait : 0, again: word !== "refused" };
}

/** The sentence on something other than an answer that failed, which screen readers are told as well. */
export function trouble({ explain, announce }: ChatContext, error: unknown): HTMLElement {
  const { message } = explain(error, "failed");
  announce(message);
  return element("p", { className: "trouble", textContent: message });
}
