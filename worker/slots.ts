/** Work that waits for its turn, with the wait as a step of its own in the call's trace. */
import { step } from "../shared/tracing/spans.ts";
import type { Semaphore } from "../shared/util/mutex.ts";

export async function inSlot<T>(slots: Semaphore, work: () => Promise<T>): Promise<T> {
  const release = await step("slot.wait", () => slots.acquire());
  try {
    return await work();
  } finally {
    release();
  }
}
