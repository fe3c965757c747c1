/** State machines as tables without I/O: for each state, the state that each event leads to. */
export type Moves<State extends string, Event extends string> = Readonly<Record<State, Readonly<Partial<Record<Event, State>>>>>;
