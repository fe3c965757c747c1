/* What a keeper does by itself instead of starting a command: see files.c. */
#ifndef SANDGATE_FILES_H
#define SANDGATE_FILES_H

/*
 * Reads or writes a file.
 *
 *   send PATH              writes a line with its size, then the content, to the standard output of these streams
 *   write PATH NAME MODE   takes the content, of a small file, from the standard input; NAME is that of the file beside it until it is whole
 *
 * Calls `begin` before it may have to wait for whoever reads. Returns an exit code, as the programs that do the same have them.
 */
int work_on_file(char *const *arguments, int count, const int *streams, void (*begin)(void));

#endif
