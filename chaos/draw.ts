import { spreadHash } from "../src/base/hash.ts";
import { seededRandom, type Random } from "../src/base/random.ts";

/** Choices drawn from a seed. Each part of a run draws from its own child, so that none disturbs another's sequence. */
export class Draw {
  readonly #seed: number;
  readonly #random: Random;

  constructor(seed: number) {
    this.#seed = seed;
    this.#random = seededRandom(seed);
  }

  /** A sequence of its own, the same for the same seed and name. */
  child(name: string): Draw {
    return new Draw(spreadHash(`${this.#seed}/${name}`));
  }

  /** In [0, 1). */
  share(): number {
    return this.#random();
  }

  /** `true` with this probability. */
  chance(probability: number): boolean {
    return this.#random() < probability;
  }

  /** A whole number of at least `least` and at most `most`. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.#random() * (most - least + 1));
  }

  /** One of them; the list is not empty. */
  pick<Item>(items: readonly [Item, ...Item[]]): Item;
  pick<Item>(items: readonly Item[]): Item | undefined;
  pick<Item>(items: readonly Item[]): Item | undefined {
    return items[Math.floor(this.#random() * items.length)];
  }

  /** All of them in another order. */
  shuffled<Item>(items: readonly Item[]): Item[] {
    return items
      .map((item) => ({ item, place: this.#random() }))
      .sort((left, right) => left.place - right.place)
      .map(({ item }) => item);
  }

  /** One of them, each as likely as its weight says; `undefined` when all weigh nothing. */
  weighted<Item>(items: readonly { readonly item: Item; readonly weight: number }[]): Item | undefined {
    let left = this.#random() * items.reduce((sum, { weight }) => sum + weight, 0);
    for (const { item, weight } of items) {
      left -= weight;
      if (left < 0) return item;
    }
    return undefined;
  }

  /** Eight characters that no other draw is likely to give. */
  word(): string {
    return Math.floor(this.#random() * 36 ** 8)
      .toString(36)
      .padStart(8, "0");
  }
}
