// Text in pages.

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};

/** For the text of an element, or an attribute in double quotes. */
export function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (found) => entities[found] ?? found);
}
