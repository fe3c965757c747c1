/**
 * How a part proves to NATS who it is: an Ed25519 key, whose seed it keeps. The NATS client would sign in JavaScript, which takes
 * it 0.15 s for each connection; Node.js itself signs in less than a millisecond.
 */
import { createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";
import { Prefix } from "@nats-io/nkeys";
import { Codec } from "@nats-io/nkeys/lib/codec.js";
import type { Authenticator } from "@nats-io/transport-node";

/** What comes before the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410). */
const pkcs8 = Buffer.from("302e020100300506032b657004220420", "hex");

/** The private key of an nkey's seed, such as "SU…". @throws {NKeysError} for any other text */
function privateKeyOf(seed: string): KeyObject {
  const { buf } = Codec.decodeSeed(Buffer.from(seed));
  return createPrivateKey({ key: Buffer.concat([pkcs8, buf]), format: "der", type: "pkcs8" });
}

/** The public nkey of a user, such as "U…". */
function publicNkeyOf(key: KeyObject): string {
  const { x = "" } = createPublicKey(key).export({ format: "jwk" });
  return Buffer.from(Codec.encode(Prefix.User, Buffer.from(x, "base64url"))).toString();
}

/** The public nkey of a user's seed. @throws {NKeysError} */
export const publicNkey = (seed: string): string => publicNkeyOf(privateKeyOf(seed));

/** Signs the server's challenges. @throws {NKeysError} */
export function nkeyAuthenticator(seed: string): Authenticator {
  const key = privateKeyOf(seed);
  const nkey = publicNkeyOf(key);
  return (challenge = "") => ({ nkey, sig: sign(null, Buffer.from(challenge), key).toString("base64") });
}
