/** The interface of the chat for its parts. */

import type { AnswerClient } from "./client";
import type { Trouble } from "./trouble";
import type { Say, Word } from "./words";

/** Details of the events that the element sends, as `pagewire:NAME`. */
export interface ChatEvents {
  ready: { site: string; lang: string };
  open: Record<string, never>;
  close: Record<string, never>;
  question: { question: string };
  answer: { request_id: string; conversation_id: string; question: string; stopped: boolean };
  feedback: { request_id: string; rating: "up" | "down"; comment: string | null };
  error: { code: string; message: string };
}

export interface ChatContext {
  readonly say: Say;
  readonly client: AnswerClient;
  readonly lang: string; // to answer in
  readonly subheading: "h2" | "h3"; // below the chat's own heading
  /** The message for a failed call; `away`: the text if no server was reached. */
  explain(error: unknown, away?: Word): Trouble;
  /** Say something to screen readers, once. */
  announce(text: string): void;
  /** Move the focus to the question's field, after the focused element was removed. */
  toQuestion(): void;
  emit<K extends keyof ChatEvents>(name: K, detail: ChatEvents[K]): void;
}
