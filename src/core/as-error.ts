/** The thrown value as an `Error`: unchanged if it is one, else wrapped with its text as the message. */
export function asError(cause: unknown): Error {
  return cause instanceof Error ? cause : new Error(String(cause));
}

/** Says in words why a file cannot be read or written. */
export function fileProblem(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  switch (code) {
    case 'ENOENT':
      return 'there is no such file or folder';
    case 'EISDIR':
      return 'it is a folder';
    case 'ENOTDIR':
      return 'a part of its path is not a folder';
    case 'EACCES':
    case 'EPERM':
      return 'this user may not do that';
    case 'EROFS':
      return 'the disk is read-only';
    case 'ENAMETOOLONG':
      return 'its name is too long';
    case 'ELOOP':
      return 'its symbolic links lead in a circle';
    case 'EIO':
      return 'the disk reported an error';
    default:
      return code ?? 'unknown';
  }
}
