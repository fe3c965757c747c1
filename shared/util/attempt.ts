/** For what may be gone at any moment, such as a process or a file of another program. */

/** The result of an action, or undefined if it fails. */
export function attempt<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}
