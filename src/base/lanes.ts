/**
 * Handles items in their order, so many at a time. When one fails, so does this, while those that were begun go on.
 */
export async function inLanes<Item>(
  items: Iterable<Item>,
  lanes: number,
  handle: (item: Item) => Promise<void>,
): Promise<void> {
  const queue = items[Symbol.iterator]();
  let failed = false;
  const lane = async (): Promise<void> => {
    for (let next = queue.next(); next.done !== true && !failed; next = queue.next()) {
      try {
        await handle(next.value);
      } catch (cause) {
        failed = true;
        throw cause;
      }
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
