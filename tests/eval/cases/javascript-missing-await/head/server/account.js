import { files, users } from './stores.js';

export async function remove(id) {
  files.removeAll(id);
  await users.remove(id);
  return { ok: true };
}
