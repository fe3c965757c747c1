/**
 * `sandgate/client`, the client library, for browsers: live sessions with a token that your server has requested.
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

/** Opens a live session with a token instead of an API key. */
export function session(options: TokenSession): Promise<Session> {
  return joinSession(browserPlatform, options);
}
