/**
 * `sandgate/client`, the client library, for Node.js 18 and later.
 *
 *     const client = new Sandgate();
 *     await using sandbox = await client.sandboxes.create();
 *     const { stdout } = await sandbox.execute("uname -r");
 */
import { type ClientOptions, SandgateClient } from "./client.ts";
import { nodePlatform } from "./platform-node.ts";
import type { Session } from "./session/session.ts";
import { joinSession, type TokenSession } from "./session/token.ts";

export * from "./exports.ts";
export type { TokenSession } from "./session/token.ts";

export class Sandgate extends SandgateClient {
  constructor(options: ClientOptions = {}) {
    super(nodePlatform, options);
  }
}

/** Opens a live session with a token instead of an API key. */
export function session(options: TokenSession): Promise<Session> {
  return joinSession(nodePlatform, options);
}
