/** The ways in which a command of the operator ends other than well. */

/** The command line is not one that there is. */
export class UsageError extends Error {
  override name = "UsageError";
}

/** It could not be done; the message is for the person. */
export class AdminError extends Error {
  override name = "AdminError";
}
