/** Sets that are kept by a key; one that is empty is not kept. */

/** Puts an item into the set of a key. */
export function addTo<Key, Item>(map: Map<Key, Set<Item>>, key: Key, item: Item): void {
  const set = map.get(key);
  if (set === undefined) map.set(key, new Set([item]));
  else set.add(item);
}

/** Takes an item out of the set of a key. */
export function removeFrom<Key, Item>(map: Map<Key, Set<Item>>, key: Key, item: Item): void {
  const set = map.get(key);
  set?.delete(item);
  if (set?.size === 0) map.delete(key);
}
