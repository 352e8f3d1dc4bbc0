export interface Page { from: number; size: number }

export function page(query: Record<string, string>): Page {
  const from = Number(query.from) || 1;
  const size = Number(query.size) || 50;
  return { from, size };
}
