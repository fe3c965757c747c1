/** Where the programs of a Debian system are, whoever looks for them. Plain JavaScript for Node 18 and later. */
export const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
