/** How many items a chunk holds before it is cut in two. */
const CHUNK_MAX = 512;

/**
 * An ordered set: items in the order of `compare`, which must tell any two different items apart. Kept as a list of
 * short sorted arrays: adding, deleting and seeking cost a binary search and a short move, and walking is a plain loop.
 */
export class SortedSet<Item> {
  readonly #compare: (left: Item, right: Item) => number;
  readonly #chunks: Item[][] = [];
  #size = 0;

  constructor(compare: (left: Item, right: Item) => number) {
    this.#compare = compare;
  }

  get size(): number {
    return this.#size;
  }

  /** The smallest item. */
  first(): Item | undefined {
    return this.#chunks[0]?.[0];
  }

  /** Adds an item; `false` when it was there. */
  add(item: Item): boolean {
    if (this.#chunks.length === 0) this.#chunks.push([]);
    const chunkIndex = Math.min(this.#chunkFor(item), this.#chunks.length - 1);
    const chunk = this.#chunks[chunkIndex] ?? [];
    const index = this.#indexIn(chunk, item);
    const there = chunk[index];
    if (there !== undefined && this.#compare(there, item) === 0) return false;
    chunk.splice(index, 0, item);
    this.#size++;
    if (chunk.length > CHUNK_MAX) this.#chunks.splice(chunkIndex + 1, 0, chunk.splice(CHUNK_MAX / 2));
    return true;
  }

  /** Takes an item out; `false` when it was not there. */
  delete(item: Item): boolean {
    const chunkIndex = this.#chunkFor(item);
    const chunk = this.#chunks[chunkIndex];
    if (chunk === undefined) return false;
    const index = this.#indexIn(chunk, item);
    const there = chunk[index];
    if (there === undefined || this.#compare(there, item) !== 0) return false;
    chunk.splice(index, 1);
    this.#size--;
    if (chunk.length === 0) this.#chunks.splice(chunkIndex, 1);
    return true;
  }

  /** Walks in order, from the first item that is not smaller than `from`. The set must not change meanwhile. */
  *items(from?: Item): Generator<Item, undefined> {
    const chunkFrom = from === undefined ? 0 : this.#chunkFor(from);
    for (let chunkIndex = chunkFrom; chunkIndex < this.#chunks.length; chunkIndex++) {
      const chunk = this.#chunks[chunkIndex] ?? [];
      const indexFrom = from !== undefined && chunkIndex === chunkFrom ? this.#indexIn(chunk, from) : 0;
      for (let index = indexFrom; index < chunk.length; index++) {
        const item = chunk[index];
        if (item !== undefined) yield item;
      }
    }
    return undefined;
  }

  /** The first chunk whose last item is not smaller than `item`; one past the end when there is none. */
  #chunkFor(item: Item): number {
    let low = 0;
    let high = this.#chunks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const last = this.#chunks[middle]?.at(-1);
      if (last !== undefined && this.#compare(last, item) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #indexIn(chunk: readonly Item[], item: Item): number {
    let low = 0;
    let high = chunk.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const there = chunk[middle];
      if (there !== undefined && this.#compare(there, item) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
