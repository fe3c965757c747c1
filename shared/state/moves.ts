/** State machines as tables without I/O: for each state, the state that each event leads to. */
type Moves<State extends string, Event extends string> = Readonly<Record<State, Readonly<Partial<Record<Event, State>>>>>;

/** The function that tells the state after an event, or undefined when the event is not allowed in the state. */
export const movesBy =
  <State extends string, Event extends string>(moves: Moves<State, Event>) =>
  (state: State, event: Event): State | undefined =>
    moves[state][event];
