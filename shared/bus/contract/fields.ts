/** Fields that several messages of the bus have. */
import Type, { type Static } from "typebox";

export const Id = Type.String({ minLength: 1, maxLength: 64 });
/** What a process is called on the bus, and of what a subject is made: no wildcard and nothing empty in it. */
export const Peer = Type.String({ maxLength: 128, pattern: "^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$" });
const StreamId = Type.String({ maxLength: 64, pattern: "^[A-Za-z0-9_-]+$" });
export const Count = Type.Integer({ minimum: 0 });
export const Millis = Type.Integer({ minimum: 0 });
export const Access = Type.Union([Type.Literal("none"), Type.Literal("outbound")]);
/** Absent for standard. */
export const Isolation = Type.Optional(Type.Union([Type.Literal("standard"), Type.Literal("strong")]));
export const Empty = Type.Object({});

/** Who asks, for isolation and logs. Part of every call of an account. */
export const caller = { request_id: Id, account_id: Id };

/** Where the receiving process takes the frames of a stream, and how many bytes it has room for at once. */
export const StreamTarget = Type.Object({ peer: Peer, stream_id: StreamId, window_bytes: Count });
export type StreamTarget = Static<typeof StreamTarget>;
