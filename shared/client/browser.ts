/**
 * `sandgate/client`, the client library, for browsers: live sessions by a token that a server of yours has asked for.
 */
import { type ClientOptions, SandgateClient } from "./client.ts";
import { browserPlatform } from "./platform-browser.ts";
import type { Session } from "./session/session.ts";
import { joinSession, type TokenSession } from "./session/token.ts";

export * from "./exports.ts";
export type { TokenSession } from "./session/token.ts";

export class Sandgate extends SandgateClient {
  constructor(options: ClientOptions = {}) {
    super(browserPlatform, options);
  }
}

/** A live session by a token in place of an API key. */
export function session(options: TokenSession): Promise<Session> {
  return joinSession(browserPlatform, options);
}
