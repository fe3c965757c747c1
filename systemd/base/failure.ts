/** An error that the user can act on. Its message is shown without a stack. */
export class StartFailure extends Error {
  override name = "StartFailure";
}

/** The text of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
