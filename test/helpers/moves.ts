/** Tests of a state table: every state with every event. */
import assert from "node:assert/strict";
import { test } from "node:test";

/** Declares a test for each pair. @param expected the state that follows; what it does not name must be refused */
export function testMoves<State extends string, Event extends string>(
  what: string,
  next: (state: State, event: Event) => State | undefined,
  events: readonly Event[],
  expected: Readonly<Record<State, Readonly<Partial<Record<Event, State>>>>>,
): void {
  for (const [state, moves] of Object.entries(expected) as [State, Partial<Record<Event, State>>][]) {
    for (const event of events) {
      const follows = moves[event];
      test(follows ? `"${event}" makes a ${what} that is ${state} ${follows}` : `"${event}" is refused while a ${what} is ${state}`, () => {
        assert.equal(next(state, event), follows);
      });
    }
  }
}
