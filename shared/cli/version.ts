/** The version in package.json, which the build puts in its place. */
declare const SANDGATE_VERSION: string;
export const version = SANDGATE_VERSION;
