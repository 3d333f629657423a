/* Written by `make widget` from schemas/; do not edit. */

export interface Accepted {
  type: "accepted";
  request_id: string;
  conversation_id: string;
}

export interface Answered {
  certainty: "said" | "place" | "pages" | "courtesy" | null;
  generated_by: "model" | "quotation" | "site" | null;
  handover: boolean;
  doubted: Doubted[];
  narrower: QuestionMeaning[];
  tables: WholeTable[];
  type: "answer";
  text: string;
  citations: Citation[];
  sources: Source[];
  extractive: boolean;
  stopped: boolean;
  cut: boolean;
  left_out: number;
  pending: PendingCall | null;
  strategy: string;
  trace?: Step[];
  usage: Usage;
  timings_ms: Record<string, number>;
  found: FoundPage[];
}

export interface AskedTurn {
  certainty: "said" | "place" | "pages" | "courtesy" | null;
  generated_by: "model" | "quotation" | "site" | null;
  handover: boolean;
  doubted: Doubted[];
  narrower: QuestionMeaning[];
  tables: WholeTable[];
  request_id: string;
  question: string;
  lang: string;
  asked_at: string;
  state: "pending" | "answered" | "stopped" | "failed";
  rephrased: string | null;
  grade: number | null;
  answer: string;
  citations: Citation[];
  sources: CitedSource[];
  extractive: boolean;
  error: string | null;
  feedback: Feedback | null;
  withheld: boolean;
}

export interface ChatRequest {
  question: string;
  conversation_id?: string | null;
  lang?: string | null;
  keep?: boolean;
  labels?: Record<string, string[]>;
  ranked?: number;
}

export interface Citation {
  type: "citation";
  n: number;
  start: number;
  end: number;
  quote: string | null;
}

export interface CitedSource {
  page_kind: string;
  published_at: string | null;
  changed_at: string | null;
  n: number;
  page_id: string;
  lang: string;
  title: string;
  url: string;
  field: "name" | "title" | "description" | "keywords" | "content";
  ord: number;
  kind: "page" | "tool";
}

export interface ConversationDetail {
  conversation_id: string;
  title: string;
  created_at: string;
  updated_at: string;
  turns: AskedTurn[];
}

export interface ConversationList {
  today: ConversationSummary[];
  yesterday: ConversationSummary[];
  last_week: ConversationSummary[];
  older: ConversationSummary[];
}

export interface ConversationSummary {
  conversation_id: string;
  title: string;
  created_at: string;
  updated_at: string;
  turns: number;
}

export interface Done {
  type: "done";
}

export interface Doubted {
  start: number;
  end: number;
  kind: "figure" | "belongs" | "name" | "negation" | "entailment";
  said: string;
}

export interface Failed {
  type: "error";
  code: string;
  message: string;
}

export interface Feedback {
  rating: "up" | "down";
  comment: string | null;
  at: string;
}

export interface FeedbackOrder {
  rating: "up" | "down";
  comment?: string | null;
}

export interface FoundPage {
  page_id: string;
  lang: string;
}

export interface Gate {
  distance: number;
  entropy: number;
  subject: number;
  by_figures: number;
  score: number | null;
  threshold: number | null;
  signals: Record<string, number>;
}

export interface HandoverOrder {
  name?: string;
  reply_to: string;
  message: string;
  conversation_id?: string | null;
  lang?: string | null;
}

export interface HandoverTaken {
  reference: string;
}

export interface NextQuestions {
  questions: string[];
}

export interface PendingCall {
  tool: string;
  arguments: string;
  missing: string[];
}

export interface PromptMessage {
  role: string;
  text: string;
}

export interface QuestionMeaning {
  label: string;
  question: string;
}

export interface QuestionRephrased {
  type: "rephrased";
  question: string;
  mode: "semantic" | "keyword" | "courtesy";
}

export interface Restart {
  type: "restart";
  attempt: number;
}

export interface SearchHit {
  page_kind: string;
  published_at: string | null;
  changed_at: string | null;
  page_id: string;
  lang: string;
  title: string;
  url: string;
  field: "name" | "title" | "description" | "keywords" | "content";
  ord: number;
  text: string;
  score: number;
  cosine: number | null;
  revision: number;
  snippet: Snippet;
  labels: Record<string, string[]>;
}

export interface SearchResult {
  hits: SearchHit[];
}

export interface Snippet {
  parts: SnippetPart[];
  fragment: string;
  heading: string;
}

export interface SnippetPart {
  text: string;
  match: boolean;
}

export interface Source {
  page_kind: string;
  published_at: string | null;
  changed_at: string | null;
  n: number;
  page_id: string;
  lang: string;
  title: string;
  url: string;
  field: "name" | "title" | "description" | "keywords" | "content";
  ord: number;
  heading: string;
  text: string;
  score: number;
  cosine: number | null;
  revision: number;
  cited: boolean;
  kind: "page" | "tool";
}

export interface SourcesFound {
  type: "sources";
  grade: number;
  sources: Source[];
}

export interface Step {
  kind: "model" | "search" | "lookup" | "tool" | "quote" | "error";
  asked: string;
  said: string;
  ms: number;
}

export interface SuggestResult {
  titles: SuggestedPage[];
  headings: SuggestedHeading[];
  questions: string[];
}

export interface SuggestedHeading {
  heading: string;
  title: string;
  url: string;
  fragment: string;
  lang: string;
}

export interface SuggestedPage {
  title: string;
  url: string;
  lang: string;
}

export interface Sure {
  of: "unit" | "page" | "nothing";
  unit: number | null;
  page: number | null;
  signals: Record<string, number>;
}

export interface Token {
  type: "token";
  text: string;
}

export interface TrialFindings {
  became: "answered" | "page" | "refused" | "courtesy" | "failed";
  gate: Gate | null;
  sure: Sure | null;
  prompt: PromptMessage[];
  corrections: string[];
  index: string | null;
  found: FoundPage[];
}

export interface Usage {
  model: string | null;
  prompt_tokens: number;
  completion_tokens: number;
}

export interface VisitorToken {
  token: string;
  expires_at: string;
}

export interface Welcome {
  title: string;
  examples: string[];
  model: boolean;
  handover: boolean;
  frequent: boolean;
}

export interface WholeTable {
  n: number;
  start: number;
  text: string;
}

export type Event = Accepted | QuestionRephrased | SourcesFound | Token | Citation | Answered | Done | Failed | Restart;
