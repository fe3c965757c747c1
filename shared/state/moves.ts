/** State machines as tables without I/O: which event leads from which state to which. */
export type Moves<State extends string, Event extends string> = Readonly<Record<State, Readonly<Partial<Record<Event, State>>>>>;
