/**
 * Loaded before a program to set its wall clock wrong: `Date` is off by the milliseconds that the file named by
 * CHAOS_CLOCK_FILE holds, read four times a second. Monotonic clocks and timers are left alone, as by a real step.
 */
import { readFileSync } from "node:fs";

const file = process.env.CHAOS_CLOCK_FILE;
const RealDate = Date;
let offsetMs = 0;

function read() {
  try {
    offsetMs = Number(readFileSync(file, "utf8").trim()) || 0;
  } catch {
    offsetMs = 0;
  }
}

if (file !== undefined) {
  read();
  setInterval(read, 250).unref();
  globalThis.Date = class Date extends RealDate {
    constructor(...given) {
      if (given.length === 0) super(RealDate.now() + offsetMs);
      else super(...given);
    }

    static now() {
      return RealDate.now() + offsetMs;
    }
  };
}
