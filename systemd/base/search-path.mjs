/** The PATH of a Debian system, independent of the caller's. Plain JavaScript for Node 18 and later. */
export const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
