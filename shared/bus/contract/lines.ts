/** The call by which a gateway asks a worker onto a line. */
import Type from "typebox";
import type { Declared } from "./declared.ts";
import { Empty, Peer } from "./fields.ts";

/** Bytes of the random token by which a gateway knows who has come to its socket, and their letters. */
export const lineTokenBytes = 32;
export const lineTokenLetters = 2 * lineTokenBytes;

export const lineCalls = {
  /** Replies when their streams go over the line; an error when the worker does not reach the gateway in this way. */
  line: {
    request: Type.Object({
      /** Who asks. */
      peer: Peer,
      /** On the same machine: a file in the folder that both parts know. No other can be named. */
      socket: Type.Optional(Type.String({ pattern: "^[a-z0-9_]{1,64}\\.sock$" })),
      /** From another machine: where the gateway answers by TLS. */
      address: Type.Optional(Type.Object({ host: Type.String({ maxLength: 45 }), port: Type.Integer({ minimum: 1, maximum: 65_535 }) })),
      /** Used up by the first who has it. */
      token: Type.String({ pattern: `^[0-9a-f]{${lineTokenLetters}}$` }),
    }),
    reply: Empty,
    timeoutMs: 5_000,
  },
} satisfies Declared;
