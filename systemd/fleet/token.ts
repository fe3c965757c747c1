/** What a machine needs to join a fleet, in one word that can be pasted. It is a secret: who has it can be that member. */
import Type, { type Static } from "typebox";
import { checker } from "../../shared/schemas/validate.ts";
import { StartFailure } from "../base/failure.ts";

const prefix = "sgj_";

const Token = Type.Object({
  version: Type.Literal(1),
  role: Type.Union([Type.Literal("worker"), Type.Literal("gateway")]),
  id: Type.String(),
  /** Where the machine reaches the NATS server. */
  url: Type.String(),
  /** By which it knows the server, in PEM. */
  certificate: Type.String(),
  /** Of its nkeys: a worker has two. */
  seeds: Type.Array(Type.String()),
  /** Of the first account; only for gateways, which may read and write all accounts anyway. */
  apiKey: Type.Optional(Type.String()),
});
export type Token = Static<typeof Token>;

const check = checker(Token);

export const encodeToken = (token: Token): string => prefix + Buffer.from(JSON.stringify(token)).toString("base64url");

/** @throws {StartFailure} if it is not one, or only a part of one. */
export function decodeToken(text: string): Token {
  const word = text.trim();
  try {
    if (!word.startsWith(prefix)) throw new Error(`it does not begin with ${prefix}`);
    return check(JSON.parse(Buffer.from(word.slice(prefix.length), "base64url").toString()));
  } catch (error) {
    throw new StartFailure("--join takes the whole word that sandgate-admin join-token has printed, and nothing else.", { cause: error });
  }
}
