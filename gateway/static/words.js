/** What the chat itself says, per language. English is the fallback. */

const WORDS = {
  en: {
    heading: "Ask {title}",
    open: "Ask a question",
    close: "Close chat",
    restart: "New conversation",
    intro: "Ask in your own words. The answer comes from this website's pages and links to them.",
    examples: "For example",
    conversation: "Conversation",
    label: "Your question",
    placeholder: "Ask a question …",
    send: "Send question",
    stop: "Stop answering",
    searching: "Searching the pages …",
    searchingFor: "Searching for “{question}” …",
    reading: { one: "Reading 1 passage …", other: "Reading {count} passages …" },
    again: "Starting the answer again …",
    reconnecting: "Connection lost. Reconnecting …",
    stopped: "Stopped.",
    quoted: "Quoted word for word from the pages.",
    sources: "Sources",
    related: "Pages that may help",
    source: "Source {n}: {title}",
    retry: "Try again",
    regenerate: "Answer again",
    undo: "Take back",
    helpful: "Helpful",
    unhelpful: "Not helpful",
    past: "Your conversations",
    nothingPast: "No conversations yet.",
    today: "Today",
    yesterday: "Yesterday",
    last_week: "Last week",
    older: "Older",
    remove: "Delete “{title}”",
    disclaimer: "Answers can be wrong. Please check the linked pages.",
    network: "The connection was lost. Please try again.",
    busy: "Too many questions at once. Please wait a moment.",
    tooLong: "This question is too long.",
    refused: "The chat is not available on this page.",
    failed: "Something went wrong. Please try again.",
  },
  de: {
    heading: "Fragen an {title}",
    open: "Frage stellen",
    close: "Chat schließen",
    restart: "Neues Gespräch",
    intro: "Fragen Sie in eigenen Worten. Die Antwort stammt von den Seiten dieser Website und verweist auf sie.",
    examples: "Zum Beispiel",
    conversation: "Gespräch",
    label: "Ihre Frage",
    placeholder: "Frage stellen …",
    send: "Frage absenden",
    stop: "Antwort anhalten",
    searching: "Seiten werden durchsucht …",
    searchingFor: "Suche nach „{question}“ …",
    reading: { one: "1 Textstelle wird gelesen …", other: "{count} Textstellen werden gelesen …" },
    again: "Die Antwort beginnt von vorn …",
    reconnecting: "Verbindung verloren. Neuer Versuch …",
    stopped: "Angehalten.",
    quoted: "Wörtlich von den Seiten zitiert.",
    sources: "Quellen",
    related: "Seiten, die helfen könnten",
    source: "Quelle {n}: {title}",
    retry: "Noch einmal",
    regenerate: "Neu antworten",
    undo: "Zurücknehmen",
    helpful: "Hilfreich",
    unhelpful: "Nicht hilfreich",
    past: "Ihre Gespräche",
    nothingPast: "Noch keine Gespräche.",
    today: "Heute",
    yesterday: "Gestern",
    last_week: "Letzte Woche",
    older: "Älter",
    remove: "„{title}“ löschen",
    disclaimer: "Antworten können falsch sein. Bitte prüfen Sie die verlinkten Seiten.",
    network: "Die Verbindung ist abgebrochen. Bitte versuchen Sie es noch einmal.",
    busy: "Zu viele Fragen auf einmal. Bitte warten Sie einen Augenblick.",
    tooLong: "Diese Frage ist zu lang.",
    refused: "Der Chat ist auf dieser Seite nicht verfügbar.",
    failed: "Etwas ist schiefgegangen. Bitte versuchen Sie es noch einmal.",
  },
};

/**
 * A function from a word's name and its values to the words in `lang`.
 * A word with plural forms takes the form of `values.count`.
 */
export function wordsFor(lang) {
  const words = WORDS[lang.split("-")[0]] ?? WORDS.en;
  const plural = new Intl.PluralRules(words === WORDS.en ? "en" : lang);
  return (name, values = {}) => {
    const found = words[name];
    const text = typeof found === "string" ? found : found[plural.select(values.count)] ?? found.other;
    return text.replace(/\{(\w+)\}/g, (_, key) => values[key]);
  };
}
