export interface Page { from: number; size: number }

export function page(query: Record<string, string>): Page {
  return { from: Number(query.from), size: Number(query.size) };
}
