// Escapes text for HTML pages.

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};

/** Escapes the text of an element, or of an attribute in double quotes. */
export function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (found) => entities[found] ?? found);
}
