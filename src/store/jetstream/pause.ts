/** Waits. */
export const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });

const FIRST_DELAY_MS = 8;
const DELAY_MAX_MS = 400;

/** How long to wait before the next try after so many failed ones: twice as long each time, and never quite alike. */
export const repeatDelayMs = (failures: number): number =>
  failures <= 0 ? 0 : Math.min(DELAY_MAX_MS, FIRST_DELAY_MS * 2 ** (failures - 1)) * (0.5 + Math.random());
