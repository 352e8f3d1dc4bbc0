export const users = { async remove(id) { return fetch(`/users/${id}`, { method: 'DELETE' }); } };
export const files = { async removeAll(owner) { return fetch(`/files?owner=${owner}`, { method: 'DELETE' }); } };
