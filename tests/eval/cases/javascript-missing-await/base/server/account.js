import { files, users } from './stores.js';

export async function remove(id) {
  await users.remove(id);
  return { ok: true };
}
